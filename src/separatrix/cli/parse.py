"""What people type for seeds and settings, turned into values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.errors import InvalidInput

if TYPE_CHECKING:
    from separatrix.lab.sweeping import Axis


MOST_SEEDS = 1_000_000


def parse_seeds(text: str | None) -> tuple[int, ...] | None:
    """Seeds: ``"3"`` is 0, 1, 2; ``"0,4,7"`` are these; ``"2-5"`` is 2 to 5; ``"4,"`` is 4 alone.

    Example:
        >>> parse_seeds("3"), parse_seeds("2-5"), parse_seeds("4,")
        ((0, 1, 2), (2, 3, 4, 5), (4,))
    """
    if text is None:
        return None
    try:
        _refuse_many(text)
        if text.isdecimal():
            seeds = tuple(range(int(text)))
        else:
            seeds = tuple(seed for part in text.split(",") if part.strip() for seed in _range(part.strip()))
    except InvalidInput:
        raise
    except (ValueError, OverflowError):
        seeds = ()
    if not seeds:
        raise InvalidInput(f"--seeds takes a number of seeds (3), a list (0,4,7) or a range (2-5); got {text!r}.")
    return tuple(dict.fromkeys(seeds))


def _refuse_many(text: str) -> None:
    """Seeds are written down one by one; a number that no machine could is a slip of the finger."""
    parts = text.split(",") if not text.isdecimal() else [f"0-{text}"]
    if sum(len(_range(part.strip())) for part in parts if part.strip()) > MOST_SEEDS:
        raise InvalidInput(f"--seeds takes at most {MOST_SEEDS} seeds; got {text!r}.")


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first), int(first) + 1)


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str | None, option: str) -> float | None:
    """A time in seconds: ``"90"`` and ``"90s"`` are 90 seconds, ``"20m"`` minutes, ``"2h"`` hours, ``"1d"`` a day.

    Example:
        >>> parse_duration("1.5h", "--budget")
        5400.0
    """
    if text is None:
        return None
    unit = _UNITS.get(text[-1:])
    try:
        seconds = float(text[:-1]) * unit if unit is not None else float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidInput(f"{option} takes a time such as 90s, 20m or 2h; got {text!r}.")
    return seconds


def parse_axis(text: str) -> tuple[str, Axis]:
    """One axis of a sweep: ``width=8,16`` has two values; ``lr=0.001..0.1:log`` and ``n=2..64`` are spans.

    Example:
        >>> parse_axis("family=goe,gaussian")
        ('family', ('goe', 'gaussian'))
    """
    from separatrix.lab.sweeping import Span

    name, equals, values = text.partition("=")
    if not equals or not name or not values.strip():
        raise InvalidInput(f"--grid takes key=value,value,... or key=low..high; got {text!r}.")
    if ".." in values:
        bare, _, kind = values.partition(":")
        low, _, high = bare.partition("..")
        try:
            if kind not in ("", "log"):
                raise ValueError
            whole = low.strip().lstrip("-").isdecimal() and high.strip().lstrip("-").isdecimal()
            return name, Span(float(low), float(high), kind == "log", whole)
        except InvalidInput:
            raise
        except ValueError:
            raise InvalidInput(f"--grid: a span is low..high or low..high:log; got {values!r}.") from None
    try:
        listed = json.loads(f"[{values}]")
    except (ValueError, RecursionError):
        listed = [_value(part.strip()) for part in values.split(",")]
    return name, tuple(listed)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


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
        except RecursionError:
            raise InvalidInput(f"--set {name}: the value is nested too deeply.") from None
    return values
