"""kerg2022, appendix C, Fig. 3: colours that do not count, network by network."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import COLOURED, suite_scales
from ..suite import suite_experiment

MODELS = ("ESBN", "CoRelNet", "random encoder ESBN", "random encoder CoRelNet", "L1 ESBN", "L1 CoRelNet")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig3",
    title="Colours that do not count, network by network",
    place="appendix C, Fig. 3",
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
)
