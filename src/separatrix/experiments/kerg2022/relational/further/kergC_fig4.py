"""kerg2022, appendix C, Fig. 4: shapes and colours as separate inputs."""

from __future__ import annotations

from ..judging import fall_claim, level_claim
from ..scales import RANGE, suite_scales
from ..suite import suite_experiment

TASKS = ("same_diff_separated",)
MODELS = ("CoRelNet", "ESBN", "Transformer")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig4",
    title="Shapes and colours as separate inputs",
    place="appendix C, Fig. 4",
    scales=suite_scales(TASKS, MODELS, RANGE, laptop={"models": ("CoRelNet",), "n_steps": 1000, "n_measured": 10}),
    claims=(
        level_claim(
            id="kerg2022-C-fig4-corelnet",
            statement="CoRelNet ignores colours that come as separate inputs, however many shapes are held out.",
            models=("CoRelNet",),
            tasks=TASKS,
            above=0.95,
            every=True,
        ),
        fall_claim(
            id="kerg2022-C-fig4-others",
            statement="ESBN and Transformer lose accuracy when shapes are held out.",
            models=("ESBN", "Transformer"),
            tasks=TASKS,
            scale="paper",
        ),
    ),
)
