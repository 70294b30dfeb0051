"""kerg2022, chapter 7, Fig. 2: which of two is larger, and whether that is passed on."""

from __future__ import annotations

from .judging import gap_claim, level_claim
from .scales import suite_scales
from .suite import suite_experiment

TASKS = ("comparison", "comparison_transitive")
MODELS = (
    "CoRelNet",
    "CoRelNet / sqrt d",
    "CoRelNet-diff",
    "asymmetric CoRelNet",
    "CoRelNet-mix",
    "ESBN",
    "asymmetric ESBN",
)

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg7-fig2",
    title="Which of two is larger, and whether that is passed on to sizes never compared",
    place="chapter 7, Fig. 2",
    scales=suite_scales(
        TASKS,
        MODELS,
        smoke={"models": MODELS[:4]},
        laptop={"models": MODELS[:5], "n_steps": 300, "seeds": tuple(range(6)), "n_test": 2000},
    ),
    claims=(
        level_claim(
            id="kerg2022-ch7-fig2-diff",
            statement="CoRelNet-diff solves comparison and transitive comparison.",
            models=("CoRelNet-diff",),
            tasks=TASKS,
            above=0.95,
        ),
        level_claim(
            id="kerg2022-ch7-fig2-symmetric",
            statement="A symmetric similarity cannot learn the comparison.",
            models=("CoRelNet", "CoRelNet / sqrt d"),
            tasks=TASKS,
            below=0.75,
            holds_for=("CoRelNet",),
            where_it_holds="it holds at temperature 1, where the softmax is saturated",
            erratum="kerg2022-symmetric-comparison",
        ),
        gap_claim(
            id="kerg2022-ch7-fig2-asymmetric",
            statement="An asymmetric similarity learns the comparison better than a symmetric one.",
            first=("asymmetric CoRelNet",),
            second=("CoRelNet",),
            tasks=("comparison",),
            above=0.0,
        ),
        level_claim(
            id="separatrix-relational-symmetric-comparison",
            document="separatrix",
            statement="The same symmetric similarity learns both comparisons when it is divided by sqrt d.",
            models=("CoRelNet / sqrt d",),
            tasks=TASKS,
            above=0.95,
        ),
    ),
)
