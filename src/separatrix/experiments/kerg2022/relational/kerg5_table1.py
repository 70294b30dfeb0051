"""kerg2022, chapter 5, Table 1: relational games on families never seen."""

from __future__ import annotations

from .judging import level_claim
from .scales import FIVE, GAMES, suite_scales
from .suite import suite_experiment

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg5-table1",
    title="Relational games on families never seen: five networks",
    place="chapter 5, Table 1",
    scales=suite_scales(
        GAMES,
        FIVE,
        smoke={
            "tasks": ("game_row_matching", "game_colour_shape", "game_left_of"),
            "models": ("CoRelNet", "ESBN", "Transformer"),
        },
        laptop={
            "tasks": ("game_between", "game_row_matching", "game_colour_shape", "game_left_of"),
            "models": ("CoRelNet", "CoRelNet-T", "Transformer"),
            "n_test": 4000,
            "n_measured": 10,
            "public": True,
        },
    ),
    claims=(
        level_claim(
            id="kerg2022-ch5-table1-rows",
            statement="CoRelNet and CoRelNet-T match rows of objects of families never seen.",
            models=("CoRelNet", "CoRelNet-T"),
            tasks=("game_row_matching",),
            above=0.85,
        ),
        level_claim(
            id="kerg2022-ch5-table1-rows-transformer",
            statement="A transformer does not get beyond chance at matching rows.",
            models=("Transformer",),
            tasks=("game_row_matching",),
            below=0.6,
        ),
        level_claim(
            id="kerg2022-ch5-table1-rows-predinet",
            statement="PrediNet does not get beyond chance at matching rows.",
            models=("PrediNet",),
            tasks=("game_row_matching",),
            below=0.6,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-ch5-table1-colour-shape",
            statement="CoRelNet and CoRelNet-T cannot tell colour from shape.",
            models=("CoRelNet", "CoRelNet-T"),
            tasks=("game_colour_shape",),
            below=0.6,
        ),
        level_claim(
            id="kerg2022-ch5-table1-colour-shape-esbn",
            statement="ESBN cannot tell colour from shape.",
            models=("ESBN",),
            tasks=("game_colour_shape",),
            below=0.6,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-ch5-table1-colour-shape-others",
            statement="Transformer tells colour and shape of families never seen.",
            models=("Transformer",),
            tasks=("game_colour_shape",),
            above=0.75,
        ),
        level_claim(
            id="kerg2022-ch5-table1-left-of",
            statement="CoRelNet and CoRelNet-T tell which object is left of a brighter one.",
            models=("CoRelNet", "CoRelNet-T"),
            tasks=("game_left_of",),
            above=0.9,
        ),
        level_claim(
            id="kerg2022-ch5-table1-left-of-esbn",
            statement="ESBN does not get beyond chance at left-of.",
            models=("ESBN",),
            tasks=("game_left_of",),
            below=0.6,
            scale="paper",
        ),
    ),
    data=("relations-game",),
)
