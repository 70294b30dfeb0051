"""kerg2022, appendix C, Fig. 13: further baselines."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from ..judging import gap_claim
from ..scales import BASIC, UNSEEN, suite_scales
from ..suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


MODELS = ("CoRelNet", "MNM", "NTM", "LSTM", "RN")

EXPERIMENT = Experiment(
    name="kergC-fig13",
    title="MNM, NTM, LSTM and relation networks on tasks with held-out shapes",
    document="kerg2022",
    place="appendix C, Fig. 13",
    version=1,
    scales=suite_scales(
        (*BASIC, *UNSEEN), MODELS, smoke={"tasks": ("same_diff",), "models": ("CoRelNet", "MNM", "NTM")}
    ),
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        gap_claim(
            id="kerg2022-C-fig13-baselines",
            statement="CoRelNet is more accurate about unseen shapes than MNM, NTM, LSTM and relation networks.",
            first=("CoRelNet",),
            second=("MNM", "NTM", "LSTM", "RN"),
            tasks=(*BASIC, *UNSEEN[:3]),
            above=0.0,
            scale="paper",
        ),
    ),
    draw=draw,
)
