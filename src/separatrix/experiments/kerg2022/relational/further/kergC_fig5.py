"""kerg2022, appendix C, Fig. 5: CoRelNet with as many parameters as ESBN."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from ..judging import gap_claim
from ..scales import BASIC, UNSEEN, suite_scales
from ..suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


MODELS = ("CoRelNet", "CoRelNet-nhid", "ESBN")

EXPERIMENT = Experiment(
    name="kergC-fig5",
    title="CoRelNet with as many parameters as ESBN",
    document="kerg2022",
    place="appendix C, Fig. 5",
    version=1,
    scales=suite_scales(
        (*BASIC, *UNSEEN),
        MODELS,
        smoke={"tasks": ("identity_rules4",), "models": ("CoRelNet", "CoRelNet-nhid")},
        laptop={
            "tasks": ("same_diff", "rmts"),
            "models": ("CoRelNet", "CoRelNet-nhid"),
            "n_steps": 600,
            "n_measured": 6,
        },
    ),
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        gap_claim(
            id="kerg2022-C-fig5-nhid",
            statement="More hidden units do not make CoRelNet less accurate.",
            first=("CoRelNet-nhid",),
            second=("CoRelNet",),
            tasks=(*BASIC, *UNSEEN),
            above=-0.02,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig5-nhid-basic",
            statement="More hidden units do not make CoRelNet less accurate on the four basic tasks.",
            first=("CoRelNet-nhid",),
            second=("CoRelNet",),
            tasks=BASIC,
            above=-0.02,
        ),
    ),
    draw=draw,
)
