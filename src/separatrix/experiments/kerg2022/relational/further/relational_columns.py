"""Patterns in a column of three: trained on generated pentominoes, asked on generated and on public boards."""

from __future__ import annotations

from ..judging import level_claim
from ..scales import suite_scales
from ..suite import suite_experiment

TASKS = ("game_column_aba", "game_column_abb")

EXPERIMENT = suite_experiment(
    __name__,
    name="relational-columns",
    title="Patterns in a column, learned on generated pentominoes and asked on public boards",
    place="chapter 5, relational games",
    scales=suite_scales(
        (*TASKS, "game_column_aab"),
        ("CoRelNet", "CoRelNet-T", "Transformer"),
        smoke={"tasks": TASKS, "models": ("CoRelNet",)},
        laptop={"tasks": TASKS, "models": ("CoRelNet",), "public": True, "n_measured": 10},
    ),
    claims=(
        level_claim(
            id="separatrix-relational-columns",
            document="separatrix",
            statement="CoRelNet tells a pattern in a column of families never seen, on generated and on public boards, "
            "beyond the best rule of thumb.",
            models=("CoRelNet",),
            tasks=TASKS,
            above=0.9,
        ),
    ),
    data=("relations-game",),
)
