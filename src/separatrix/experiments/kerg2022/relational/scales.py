"""The three sizes of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from separatrix.lab import Params
from separatrix.lab.experiment.scales import Scale

from .suite import EXTREME, Settings

RANGE = (0, 50, 85, EXTREME)
BASIC = ("same_diff", "rmts", "dist3", "identity_rules")
UNSEEN = ("same_diff6", "rmts3", "identity_rules4", "identity_rules4_missing")
COLOURED = tuple(f"{name}_colour" for name in BASIC)
GAMES = tuple(
    f"game_{rule}" for rule in ("same", "between", "occurs", "xoccurs", "row_matching", "colour_shape", "left_of")
)
RELATIONAL = ("ESBN", "CoRelNet", "CoRelNet-T")
FIVE = ("CoRelNet", "CoRelNet-T", "ESBN", "PrediNet", "Transformer")


def suite_scales(
    tasks: Sequence[str],
    models: Sequence[str],
    holdouts: Sequence[int] = (EXTREME,),
    *,
    laptop: Mapping[str, Any] | None = None,
    smoke: Mapping[str, Any] | None = None,
) -> dict[Scale, Params]:
    """The source's sizes at paper scale.

    Smoke: two steps of two seeds, of a part of tasks and networks where said. Laptop: 1500 steps of 3 seeds unless
    said. A scale for which tasks or networks are named is partial.
    """
    whole: dict[str, Any] = {"tasks": tuple(tasks), "models": tuple(models), "holdouts": tuple(holdouts)}
    ends = tuple(m for m in holdouts if m in (0, EXTREME))
    tiny = {
        "n_steps": 2,
        "game_steps": 2,
        "batch_size": 4,
        "n_test": 40,
        "n_curve": 10,
        "n_measured": 1,
        "n_shapes": 24,
    }
    short = {"seeds": (0, 1, 2), "n_steps": 1500, "game_steps": 2500, "n_test": 4000, "n_curve": 500, "holdouts": ends}

    def partial(given: Mapping[str, Any]) -> dict[str, Any]:
        return {**given, "partial": bool({"tasks", "models"} & set(given))}

    return {
        "smoke": Settings(**{**whole, **tiny, "seeds": (0, 1), "holdouts": ends, **partial(smoke or {})}),
        "laptop": Settings(**{**whole, **short, **partial(laptop or {})}),
        "paper": Settings(**whole),
    }
