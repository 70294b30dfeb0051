"""kerg2022, appendix C, Table 2: relational games: further baselines."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from .judging import level_claim
from .scales import GAMES, suite_scales
from .suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


MODELS = ("CoRelNet", "CoRelNet-T", "MNM", "LSTM", "NTM", "RN")
JUDGED = ("game_row_matching", "game_left_of")

EXPERIMENT = Experiment(
    name="kergC-table2",
    title="Relational games on families never seen: further baselines",
    document="kerg2022",
    place="appendix C, Table 2",
    version=1,
    scales=suite_scales(
        GAMES,
        MODELS,
        smoke={"tasks": JUDGED, "models": ("LSTM", "RN")},
        # CoRelNet shows that so many steps are enough to learn the rule
        laptop={"tasks": JUDGED, "models": ("CoRelNet", "LSTM", "RN"), "game_steps": 1500, "n_measured": 5},
    ),
    expand=expand,
    run=run,
    summarise=summarise,
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
    draw=draw,
)
