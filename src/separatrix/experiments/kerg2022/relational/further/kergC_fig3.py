"""kerg2022, appendix C, Fig. 3: colours that do not count, network by network."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from ..judging import gap_claim
from ..scales import COLOURED, suite_scales
from ..suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


MODELS = ("ESBN", "CoRelNet", "random encoder ESBN", "random encoder CoRelNet", "L1 ESBN", "L1 CoRelNet")

EXPERIMENT = Experiment(
    name="kergC-fig3",
    title="Colours that do not count, network by network",
    document="kerg2022",
    place="appendix C, Fig. 3",
    version=1,
    scales=suite_scales(
        COLOURED,
        MODELS,
        smoke={"tasks": ("same_diff_colour",), "models": ("CoRelNet", "L1 CoRelNet")},
        # seeds that Fig. 6 of chapter 5 does not have: the two figures show the same runs in the document
        laptop={
            "tasks": COLOURED[:2],
            "models": ("CoRelNet", "L1 CoRelNet"),
            "seeds": (10, 11, 12),
            "n_steps": 600,
            "batch_size": 32,
            "n_measured": 6,
        },
    ),
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        gap_claim(
            id="kerg2022-C-fig3-l1-corelnet",
            statement="A penalty on absolute values makes CoRelNet more accurate where colours do not count.",
            first=("L1 CoRelNet",),
            second=("CoRelNet",),
            tasks=COLOURED,
            above=0.0,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig3-l1-pairs",
            statement="A penalty on absolute values makes CoRelNet more accurate on the tasks with two answers where "
            "colours do not count.",
            first=("L1 CoRelNet",),
            second=("CoRelNet",),
            tasks=COLOURED[:2],
            above=0.0,
        ),
    ),
    draw=draw,
)
