"""Counterfeits: a summary of a real run, changed so that a statement is false in it (or true), for the power check.

A rule that gives the same verdict on a counterfeit as on the real run cannot tell truth from falsehood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, resolve

from .summary import Summary

AnySummary = TypeVar("AnySummary", bound=Summary)


def with_fields(**changes: Any) -> Callable[[AnySummary], AnySummary]:
    """Change fields of a summary: each to a value, or by a function of the value that was measured.

    Example:
        >>> class Measured(Summary):
        ...     slope: float
        >>> with_fields(slope=lambda slope: 2 * slope)(Measured(slope=1.5)).slope
        3.0
    """

    def counterfeit(summary: AnySummary) -> AnySummary:
        for name in changes:
            choose(f"field of {type(summary).__name__}", name, type(summary).model_fields)
        values = {
            name: change(getattr(summary, name)) if callable(change) else change for name, change in changes.items()
        }
        return _rebuilt(summary, values)

    return counterfeit


def with_entry(field: str, entry: str, **changes: Any) -> Callable[[AnySummary], AnySummary]:
    """Change values of one dictionary among several that a field holds by name.

    Args:
        field: which field.
        entry: which of its dictionaries.
        **changes: by key (blanks written as underscores), a value or a function of the value that was measured.
    """

    def counterfeit(summary: AnySummary) -> AnySummary:
        before = getattr(summary, choose(f"field of {type(summary).__name__}", field, type(summary).model_fields))
        values = dict(resolve(f"entry of {field}", entry, before))
        for name, change in changes.items():
            key = name if name in values else choose(f"value of {entry}", name.replace("_", " "), values)
            values[key] = change(values[key]) if callable(change) else change
        return _rebuilt(summary, {field: {**before, entry: values}})

    return counterfeit


Where: TypeAlias = Callable[[Mapping[str, Any]], bool] | Mapping[str, Any] | None
"""Which rows: those a function accepts, those that hold the named values (or one of a tuple of them), or all."""


def with_column(rows: str, column: str, change: Any, where: Where = None) -> Callable[[AnySummary], AnySummary]:
    """Change one column of a table.

    Args:
        rows: title of a table of the summary, or name of a field that holds rows.
        column: which column; rows without it stay.
        change: a value, or a function of the row.
        where: which rows, by a function of the row or by values of columns; all if not given.
    """

    def counterfeit(summary: AnySummary) -> AnySummary:
        before = _rows_with(summary, rows, column)
        after = [_changed(row, column, change) if column in row and _meant(row, where) else dict(row) for row in before]
        if after == list(before):
            raise InvalidInput(f"the counterfeit changes nothing in column {column!r} of {rows!r}.")
        is_field = rows in type(summary).model_fields
        return _rebuilt(summary, {rows: after} if is_field else {"tables": {**summary.tables, rows: after}})

    return counterfeit


def with_interval(
    rows: str, low: float, high: float, where: Where = None, *, middle: str = "", prefix: str = ""
) -> Callable[[AnySummary], AnySummary]:
    """Put the intervals of a table elsewhere: columns ``low`` and ``high``.

    Args:
        rows: title of a table of the summary, or name of a field that holds rows.
        low: lower end.
        high: upper end.
        where: which rows, by a function of the row or by values of columns; all if not given.
        middle: the column of the estimate, if it is to move along; it goes to the middle of the interval.
        prefix: what stands before ``low`` and ``high`` in the names of the columns.
    """
    ends = in_turn(with_column(rows, f"{prefix}low", low, where), with_column(rows, f"{prefix}high", high, where))
    return ends if middle == "" else in_turn(ends, with_column(rows, middle, (low + high) / 2, where))


def with_interval_at(rows: str, middle: str, to: float, prefix: str = "") -> Callable[[AnySummary], AnySummary]:
    """Put every estimate of a table elsewhere, with an interval as wide as the one that was measured.

    Args:
        rows: title of a table of the summary, or name of a field that holds rows.
        middle: the column of the estimate.
        to: where it goes.
        prefix: what stands before ``low`` and ``high`` in the names of the columns.
    """

    def moved(end: str) -> Callable[[Mapping[str, Any]], float]:
        return lambda row: to + row[end] - row[middle]

    def counterfeit(summary: AnySummary) -> AnySummary:
        _rows_with(summary, rows, middle)
        ends = (with_column(rows, end, moved(end)) for end in (f"{prefix}low", f"{prefix}high"))
        return in_turn(*ends, with_column(rows, middle, to))(summary)

    return counterfeit


def in_turn(*changes: Callable[[AnySummary], AnySummary]) -> Callable[[AnySummary], AnySummary]:
    """Several changes one after another."""

    def counterfeit(summary: AnySummary) -> AnySummary:
        for change in changes:
            summary = change(summary)
        return summary

    return counterfeit


def _rebuilt(summary: AnySummary, values: Mapping[str, Any]) -> AnySummary:
    """The summary with other values, checked as when it was made."""
    kept = {name: getattr(summary, name) for name in type(summary).model_fields}
    return type(summary).model_validate({**kept, **values})


def _rows_with(summary: Summary, rows: str, column: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a field or a table, of which at least one has the column."""
    is_field = isinstance(rows, str) and rows in type(summary).model_fields
    found: Sequence[Mapping[str, Any]] = getattr(summary, rows) if is_field else summary.table(rows)
    if not isinstance(column, str) or not any(column in row for row in found):
        choose(f"column of {rows}", column, sorted({name for row in found for name in row}))
    return found


def _changed(row: Mapping[str, Any], column: str, change: Any) -> dict[str, Any]:
    return {**row, column: change(row) if callable(change) else change}


def _meant(row: Mapping[str, Any], where: Where) -> bool:
    if where is None or callable(where):
        return where is None or where(row)
    wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in where.items()}
    return all(row[name] in values for name, values in wanted.items())
