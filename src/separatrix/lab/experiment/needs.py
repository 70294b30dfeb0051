"""What a statement is about: entries, ranges, combinations and numbers of rows that a rule needs before it may judge.

An end, a count or a best that is missing from a table tells neither good news nor bad.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.scalars import in_words
from separatrix.core.wording import number


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Needed:
    """Groups that a statement names: entries that a column must hold before a rule may say anything good of it."""

    rows: str
    """Title of a table of the summary, or name of a field that holds rows."""
    column: str | tuple[str, ...]
    entries: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.entries or not all(self._fits(entry) for entry in self.entries):
            what = "words or numbers" if isinstance(self.column, str) else f"tuples of {len(self.column)}"
            raise InvalidInput(
                f"entries of groups in column {self.column!r} must be one or more {what}, each an argument "
                f"of its own; got {in_words(self.entries)}."
            )

    def _fits(self, entry: Any) -> bool:
        if isinstance(self.column, str):
            return isinstance(entry, str | int | float)
        parts = entry if isinstance(entry, tuple) else ()
        return len(parts) == len(self.column) and all(isinstance(part, str | int | float) for part in parts)

    def of(self, row: Mapping[str, Any]) -> Any:
        """The entry of a row."""
        return row.get(self.column) if isinstance(self.column, str) else tuple(row.get(name) for name in self.column)

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The entries that no row has."""
        found = [self.of(row) for row in rows]
        for entry in (entry for entry in self.entries if entry not in found):
            named = [(self.column, entry)] if isinstance(self.column, str) else zip(self.column, entry, strict=True)
            yield ", ".join(f"{name} {value}" for name, value in named)


def groups(rows: str, column: str | tuple[str, ...], *entries: Any) -> Needed:
    """That a statement names these groups, as in "for independent and orthogonal weights".

    Of several columns each entry is a tuple: ``groups("cases", ("family", "phi"), ("goe", "tanh"))``.
    """
    return Needed(rows, column, entries)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Spanned:
    """A range that a statement is about: numbers of a column must reach both of its ends."""

    rows: str
    column: str
    low: float | int
    high: float | int
    only: tuple[tuple[str, str | float | int | bool], ...] = ()
    """Columns and the entry that a row must hold there to count."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidInput(f"range of column {self.column!r} must run upwards; got {self.low} to {self.high}.")

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The ends that no row reaches."""
        numbers = [row.get(self.column) for row in _chosen(rows, self.only)]
        known = [value for value in numbers if isinstance(value, int | float) and not isinstance(value, bool)]
        if not any(value <= self.low for value in known):
            yield f"{self.column} up to {number(self.low)}"
        if not any(value >= self.high for value in known):
            yield f"{self.column} from {number(self.high)}"


def spans(rows: str, column: str, low: float | int, high: float | int, **only: str | float | int | bool) -> Spanned:
    """That a statement is about a range: ``spans("scales", "scale", 0.2, 0.9, family="haar")``.

    Choose ends that runs at every scale reach at which the claim is judged, so far apart that half of a run does not.
    """
    return Spanned(rows, column, low, high, tuple(sorted(only.items())))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Crossed:
    """Columns whose entries a run combines: every combination of what is found there must be, each as often as any.

    Rows that are missing for what was measured in them leave a hole, whatever column they were left out by.
    """

    rows: str
    axes: tuple[tuple[str, ...], ...]
    """Columns that vary by themselves, each in a tuple with those that change with it."""
    only: tuple[tuple[str, str | float | bool], ...] = ()

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Combinations that are absent or rarer than others."""
        found = Counter(
            tuple(tuple(row.get(name) for name in axis) for axis in self.axes) for row in _chosen(rows, self.only)
        )
        if not found:
            yield f"any of {self.rows}"
            return
        most = max(found.values())
        names = [name for axis in self.axes for name in axis]
        for combined in itertools.product(*(dict.fromkeys(entries) for entries in zip(*found, strict=True))):
            if found[combined] < most:
                entries = [entry for axis in combined for entry in axis]
                yield ", ".join(f"{name} {entry}" for name, entry in zip(names, entries, strict=True))


def crossed(rows: str, *axes: str | tuple[str, ...], **only: str | float | int | bool) -> Crossed:
    """That a statement is about all combinations of a table: ``crossed("scales", "family", "scale")``.

    Columns that change together are given as one: ``crossed("deviation", "size", ("lr", "balance"))``.
    """
    if not axes:
        raise InvalidInput("crossed needs the names of one or more columns; got none.")
    tuples = tuple((axis,) if isinstance(axis, str) else tuple(axis) for axis in axes)
    return Crossed(rows, tuples, tuple(sorted(only.items())))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Counted:
    """How many rows, or how many different entries of columns, a rule needs before it says anything."""

    rows: str
    least: int
    columns: tuple[str, ...] = ()
    """Different entries of these are counted; rows if there are none."""
    only: tuple[tuple[str, str | float | int | bool], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.least, bool) or not isinstance(self.least, int) or self.least < 1:
            raise InvalidInput(f"least number of rows of {self.rows!r} must be at least 1; got {in_words(self.least)}.")

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """How many there are of how many."""
        chosen = _chosen(rows, self.only)
        found = {repr([row.get(name) for name in self.columns]) for row in chosen} if self.columns else chosen
        n = len(found)
        if n < self.least:
            what = f"different {' and '.join(self.columns)}" if self.columns else "rows"
            where = "".join(f", {name} {entry}" for name, entry in self.only)
            yield f"{self.rows}{where}: {n} of {self.least} {what}"


def at_least(rows: str, least: int, *columns: str, **only: str | float | int | bool) -> Counted:
    """That a rule needs a number of rows, or of different entries: ``at_least("runs", 3, "seed", model="CoRelNet")``.

    Choose a number that runs at every scale reach at which the claim is judged.
    """
    return Counted(rows, least, columns, tuple(sorted(only.items())))


def _chosen(rows: Sequence[Mapping[str, Any]], only: Sequence[tuple[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if all(row.get(name) == entry for name, entry in only)]
