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
        (*BASIC, *UNSEEN),
        MODELS,
        smoke={"tasks": ("same_diff",), "models": ("CoRelNet", "MNM", "NTM")},
        laptop={"tasks": BASIC[:2], "models": ("CoRelNet", "LSTM", "RN"), "n_steps": 600, "n_measured": 6},
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
        gap_claim(
            id="kerg2022-C-fig13-pairs",
            statement="On the tasks with two answers CoRelNet is more accurate about unseen shapes than LSTM and "
            "relation networks after 600 steps each.",
            first=("CoRelNet",),
            second=("LSTM", "RN"),
            tasks=BASIC[:2],
            above=0.0,
        ),
    ),
    draw=draw,
)
