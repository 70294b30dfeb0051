"""Tables for people: columns named in words, a value and its uncertainty in one cell, digits that mean something.

A table of a run keeps its numbers whole under the names that code uses. Here it becomes what is shown: the column
``h_var`` with ``h_var_se`` becomes one of "0.60 ± 0.12", ``loss`` with ``loss_low`` and ``loss_high`` one of
"0.11 [0.02, 0.20]", ``n_seeds`` is headed "seeds".
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

from .headings import heading
from .numerals import at_place, measured, number, uncertainty, unsigned_zero, within_interval

_ERRORS = {
    "se": "standard error",
    "standard error": "standard error",
    "sd": "standard deviation",
    "std": "standard deviation",
    "spread": "spread",
    "error": "standard error",
}
"""How a column of uncertainties ends, or is called where it stands beside its value, and what it is."""
_BESIDE = {
    ("measured", "error"),
    ("deviation", "sd"),
    ("exponent", "spread"),
    ("share", "standard error"),
    ("mean", "std"),
    ("mean_error", "std"),
}
"""Values with an uncertainty whose column has no name of its own; elsewhere "error" is a quantity like others."""
_UNCERTAIN = re.compile(r"(^|[ _])(se|sd|std|spread|half_width|standard error)$")
"""Columns that are uncertainties themselves, whose own digits are few."""
_FORETOLD = ("theory", "document", "printed", "expected")
"""Who foretells a number; it is shown with the digits of what was measured."""
_SHARES = re.compile(r"accurac|share|recall|right|test error|consensus|opposite|instances", re.IGNORECASE)
"""What lies between 0 and 1, by title or column."""
_ONE_SIZE = 30
"""Numbers whose largest is at most so many times the smallest have their digits at the same place."""

Rows = Sequence[Mapping[str, Any]]
Words = Callable[[str, str], str]


@final
@dataclasses.dataclass(frozen=True)
class ReadableTable:
    """What a table shows: headings, cells as text, and which columns are numbers."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]


@dataclasses.dataclass
class _Column:
    heading: str
    cells: list[str]
    numeric: bool


def readable(rows: Rows, *, title: str = "", words: Words | None = None) -> ReadableTable:
    """A table of records as people read it.

    Args:
        rows: records; columns in the order they first appear.
        title: of the table; says whether its numbers are shares, whose intervals end at 0 and 1.
        words: what stands for a text, by column and text (the name of a family, for instance).

    Example:
        >>> table = readable([{"family": "haar", "h_var": 0.604167, "h_var_se": 0.116108, "n_seeds": 5}])
        >>> table.columns, table.cells
        (('family', 'length variance h·h/N ± standard error', 'seeds'), (('haar', '0.60 ± 0.12', '5'),))
    """
    data = _Data(rows, title)
    made = [data.column(name, words) for name in data.names if name not in data.taken]
    body = tuple(zip(*(column.cells for column in made), strict=True)) if made else ()
    return ReadableTable(tuple(c.heading for c in made), body, tuple(c.numeric for c in made))


class _Data:
    """The columns of a table, and which of them say how sure another one is."""

    def __init__(self, rows: Rows, title: str) -> None:
        self.title = title
        self.names = list(dict.fromkeys(name for row in rows for name in row))
        self.values: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in self.names}
        self.ends = {name: ends for name in self.names if (ends := self._ends(name)) is not None}
        self.errors = {name: found for name in self.names if (found := self._error(name)) is not None}
        self.taken = {end for ends in self.ends.values() for end in ends}
        self.taken |= {other for other, _ in self.errors.values()}

    def _ends(self, name: str) -> tuple[str, str] | None:
        """The two columns that hold the interval of a column, which lies in it."""
        index = self.names.index(name)
        pairs = [(f"{name}{joint}low", f"{name}{joint}high") for joint in ("_", " ")]
        pairs += [("low", "high")] if self.names[index + 1 : index + 3] == ["low", "high"] else []
        for low, high in pairs:
            if {low, high} <= set(self.values) and _numbers(self.values[name]):
                trios = zip(self.values[low], self.values[name], self.values[high], strict=True)
                known = [trio for trio in trios if all(map(_number, trio))]
                if all(a - 1e-9 * abs(b) <= b <= c + 1e-9 * abs(b) for a, b, c in known):
                    return low, high
        return None

    def _error(self, name: str) -> tuple[str, str] | None:
        """The column that holds the uncertainty of a column, and what kind it is."""
        if name in self.ends or not (_numbers(self.values[name]) or _empty(self.values[name])):
            return None
        for joint in ("_", " "):
            for ending, kind in _ERRORS.items():
                if f"{name}{joint}{ending}" in self.values:
                    return f"{name}{joint}{ending}", kind
        if (mean := name.removeprefix("mean_")) != name and f"std_{mean}" in self.values:
            return f"std_{mean}", "standard deviation"
        return next(((o, _ERRORS[o]) for value, o in _BESIDE if value == name and o in self.values), None)

    def column(self, name: str, words: Words | None) -> _Column:
        """What one column shows, with what says how sure it is."""
        values, told = self.values[name], heading(name, self.names)
        if name in self.ends:
            return _Column(f"{told} [low, high]", self._with_ends(name), True)
        if name in self.errors:
            other, kind = self.errors[name]
            return _Column(f"{told} ± {kind}", self._with_error(values, self.values[other]), True)
        if not _numbers(values):
            return _Column(told, [_text(name, value, words) for value in values], False)
        if _UNCERTAIN.search(name):
            return _Column(told, [uncertainty(v) if _number(v) else cell(v) for v in values], True)
        sure = self._foretold(name)
        if sure is not None:
            pairs = zip(values, self.values[sure], strict=True)
            return _Column(
                told, [_foretold_value(v, e) if _number(v) and _number(e) else cell(v) for v, e in pairs], True
            )
        return _Column(told, _aligned(values), True)

    def _foretold(self, name: str) -> str | None:
        """The uncertainty of what a column foretells: ``theory`` of ``measured``, ``theory_radius`` of ``radius``."""
        who, _, what = name.partition("_")
        found = self.errors.get(what or "measured") if who in _FORETOLD else None
        return found[0] if found is not None else None

    def _with_ends(self, name: str) -> list[str]:
        values = self.values[name]
        share = _SHARES.search(f"{self.title} {name}") and all(0 <= v <= 1 for v in values if _number(v))
        bounds = (0.0, 1.0) if share else None
        low, high = (self.values[end] for end in self.ends[name])
        return [
            within_interval(float(v), float(a), float(b), bounds=bounds) if all(map(_number, (v, a, b))) else cell(v)
            for v, a, b in zip(values, low, high, strict=True)
        ]

    @staticmethod
    def _with_error(values: Sequence[Any], errors: Sequence[Any]) -> list[str]:
        pairs = zip(values, errors, strict=True)
        return [measured(v, e if _number(e) else None, digits=4) if _number(v) else cell(v) for v, e in pairs]


def _foretold_value(value: float, error: float) -> str:
    """A value without error at the digits that what is measured beside it bears, at most six."""
    told = measured(value, error).partition(" ±")[0]
    return told if len(re.sub(r"^-?0?\.?0*|\.", "", told.partition("e")[0])) <= 6 else number(value, 6)


def _text(name: str, value: Any, words: Words | None) -> str:
    """A text cell: the name that people use, and no machine's spelling of words."""
    if not isinstance(value, str):
        return cell(value)
    told = value if words is None else words(name, value)
    return told.replace("_", " ") if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", told) else cell(told)


def _aligned(values: Sequence[Any]) -> list[str]:
    """Numbers of a column: counts whole; others with the digits of the largest, where they are of one size."""
    sizes = [abs(float(v)) for v in values if _number(v) and v and math.isfinite(v)]
    if not sizes or all(float(v).is_integer() for v in values if _number(v) and math.isfinite(v)):
        return [cell(int(v) if _number(v) and math.isfinite(v) and abs(v) < 1e15 else v) for v in values]
    largest = max(sizes)
    if not 1e-3 <= largest < 1e5 or min(sizes) < largest / _ONE_SIZE:
        return [cell(value) for value in values]
    places = max(3 - math.floor(math.log10(largest)), 0)
    texts = [at_place(float(v), places) if _number(v) and math.isfinite(v) else cell(v) for v in values]
    spare = min((len(t) - len(t.rstrip("0")) for t in texts if "." in t), default=0)
    return [unsigned_zero(t[: len(t) - spare].rstrip(".")) if spare and "." in t else t for t in texts]


def cell(value: Any) -> str:
    """One value: four digits, yes or no, a dash for nothing and for what is not a number."""
    if value is None or (isinstance(value, str) and value == "nan"):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | complex):
        return number(value, 4)
    if isinstance(value, Mapping):
        return ", ".join(f"{heading(str(key))} {cell(item)}" for key, item in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(cell(item) for item in value)
    return str(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None and value != "nan"]
    return bool(present) and all(map(_number, present))


def _empty(values: Sequence[Any]) -> bool:
    return all(value is None for value in values)
