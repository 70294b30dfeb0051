"""kerg2022, appendix C, Table 2: relational games: further baselines."""

from __future__ import annotations

from .judging import level_claim
from .scales import GAMES, suite_scales
from .suite import suite_experiment

MODELS = ("CoRelNet", "CoRelNet-T", "MNM", "LSTM", "NTM", "RN")
JUDGED = ("game_row_matching", "game_left_of")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-table2",
    title="Relational games on families never seen: further baselines",
    place="appendix C, Table 2",
    scales=suite_scales(
        GAMES,
        MODELS,
        smoke={"tasks": JUDGED, "models": ("LSTM", "RN")},
        # CoRelNet shows that so many steps are enough to learn the rule
        laptop={"tasks": JUDGED, "models": ("CoRelNet", "LSTM", "RN"), "game_steps": 1500, "n_measured": 5},
    ),
    claims=(
        level_claim(
            id="kerg2022-C-table2-rows",
            statement="MNM, LSTM, NTM and relation networks do not get beyond chance at matching rows.",
            models=("MNM", "LSTM", "NTM", "RN"),
            tasks=("game_row_matching",),
            below=0.6,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-C-table2-left-of",
            statement="Relation networks do not get beyond chance at left-of.",
            models=("RN",),
            tasks=("game_left_of",),
            below=0.6,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-C-table2-rows-short",
            statement="LSTM and relation networks do not get beyond chance at matching rows in a training that is long "
            "enough for CoRelNet.",
            models=("LSTM", "RN"),
            tasks=("game_row_matching",),
            below=0.6,
            control=("CoRelNet", 0.8),
        ),
        level_claim(
            id="kerg2022-C-table2-left-of-short",
            statement="Relation networks do not get beyond chance at left-of in a training that is long enough for "
            "CoRelNet.",
            models=("RN",),
            tasks=("game_left_of",),
            below=0.6,
            control=("CoRelNet", 0.8),
        ),
    ),
)
