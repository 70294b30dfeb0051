"""What people type for seeds and settings, turned into values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from separatrix.core.errors import InvalidInput


def parse_seeds(text: str | None) -> tuple[int, ...] | None:
    """Seeds: ``"3"`` is 0, 1, 2; ``"0,4,7"`` are these; ``"2-5"`` is 2 to 5; ``"4,"`` is 4 alone.

    Example:
        >>> parse_seeds("3"), parse_seeds("2-5"), parse_seeds("4,")
        ((0, 1, 2), (2, 3, 4, 5), (4,))
    """
    if text is None:
        return None
    try:
        if text.isdecimal():
            seeds = tuple(range(int(text)))
        else:
            seeds = tuple(seed for part in text.split(",") if part.strip() for seed in _range(part.strip()))
    except ValueError:
        seeds = ()
    if not seeds:
        raise InvalidInput(f"--seeds takes a number of seeds (3), a list (0,4,7) or a range (2-5); got {text!r}.")
    return tuple(dict.fromkeys(seeds))


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first), int(first) + 1)


def parse_settings(settings: Sequence[str] | None) -> dict[str, Any]:
    """``key=value`` pairs; a value is read as JSON if it is JSON, else taken as it stands.

    Example:
        >>> parse_settings(["width=64", "family=goe", "deltas=[0.5, 0.1]"])
        {'width': 64, 'family': 'goe', 'deltas': [0.5, 0.1]}
    """
    values: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise InvalidInput(f"--set takes key=value; got {setting!r}.")
        if name == "seeds":
            raise InvalidInput(f"seeds have an option of their own: use --seeds instead of --set {setting}.")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values
