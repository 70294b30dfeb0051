"""kerg2022, chapter 7, Fig. 3: CoRelNet-mix in the most extreme cases."""

from __future__ import annotations

from .judging import level_claim
from .scales import suite_scales
from .suite import suite_experiment

TASKS = ("same_diff", "rmts", "dist3", "identity_rules", "comparison", "comparison_transitive")
MODELS = ("CoRelNet-mix", "CoRelNet", "CoRelNet-diff")
LAPTOP = {"models": ("CoRelNet-mix",), "seeds": tuple(range(5)), "n_steps": 1000, "n_measured": 10}

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg7-fig3",
    title="CoRelNet-mix on tasks of sameness and of comparison",
    place="chapter 7, Fig. 3",
    scales=suite_scales(TASKS, MODELS, smoke={"tasks": ("same_diff", "comparison")}, laptop=LAPTOP),
    claims=(
        level_claim(
            id="kerg2022-ch7-fig3-pairs",
            statement="CoRelNet-mix does decently on tasks with two answers.",
            models=("CoRelNet-mix",),
            tasks=("same_diff", "rmts", "comparison", "comparison_transitive"),
            above=0.75,
        ),
        level_claim(
            id="kerg2022-ch7-fig3-choices",
            statement="CoRelNet-mix does decently on tasks with four answers.",
            models=("CoRelNet-mix",),
            tasks=("dist3", "identity_rules"),
            above=0.625,
        ),
    ),
)
