"""Counterfeits: a summary of a real run, changed so that a statement is false in it (or true), for the power check.

A rule that gives the same verdict on a counterfeit as on the real run cannot tell truth from falsehood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

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


def with_column(
    rows: str, column: str, change: Any, where: Callable[[Mapping[str, Any]], bool] | None = None
) -> Callable[[AnySummary], AnySummary]:
    """Change one column of a table.

    Args:
        rows: title of a table of the summary, or name of a field that holds rows.
        column: which column; rows without it stay.
        change: a value, or a function of the row.
        where: which rows; all if not given.
    """

    def changed(row: Mapping[str, Any]) -> dict[str, Any]:
        if column not in row or (where is not None and not where(row)):
            return dict(row)
        return {**row, column: change(row) if callable(change) else change}

    def counterfeit(summary: AnySummary) -> AnySummary:
        is_field = isinstance(rows, str) and rows in type(summary).model_fields
        before = getattr(summary, rows) if is_field else summary.table(rows)
        if not isinstance(column, str) or not any(column in row for row in before):
            choose(f"column of {rows}", column, sorted({name for row in before for name in row}))
        after = [changed(row) for row in before]
        if after == list(before):
            raise InvalidInput(f"the counterfeit changes nothing in column {column!r} of {rows!r}.")
        return _rebuilt(summary, {rows: after} if is_field else {"tables": {**summary.tables, rows: after}})

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
