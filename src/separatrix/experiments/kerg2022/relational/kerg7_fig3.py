"""kerg2022, chapter 7, Fig. 3: CoRelNet-mix in the most extreme cases."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from .judging import level_claim
from .scales import suite_scales
from .suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


TASKS = ("same_diff", "rmts", "dist3", "identity_rules", "comparison", "comparison_transitive")
MODELS = ("CoRelNet-mix", "CoRelNet", "CoRelNet-diff")
LAPTOP = {"models": ("CoRelNet-mix",), "seeds": tuple(range(5)), "n_steps": 1000, "n_measured": 10}

EXPERIMENT = Experiment(
    name="kerg7-fig3",
    title="CoRelNet-mix on tasks of sameness and of comparison",
    document="kerg2022",
    place="chapter 7, Fig. 3",
    version=1,
    scales=suite_scales(TASKS, MODELS, smoke={"tasks": ("same_diff", "comparison")}, laptop=LAPTOP),
    expand=expand,
    run=run,
    summarise=summarise,
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
    draw=draw,
)
