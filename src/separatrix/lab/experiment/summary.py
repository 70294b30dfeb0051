"""What all payloads of a run condense to: named quantities and tables, checked when made and kept by JSON.

A quantity is a field of a class, so that a misspelt name is an error where it is written, for the type checker and at
run time alike; a table is asked for by its title, and a misspelt title gets the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import pydantic

from separatrix.core.errors import CorruptData, InvalidInput
from separatrix.core.names import resolve
from separatrix.core.result import plain

from .frozen_model import FrozenModel

_NOT_FINITE = {str(value): value for value in (math.nan, math.inf, -math.inf)}
"""How ``plain`` writes what JSON cannot hold."""


def _restored(value: Any) -> Any:
    """A value as it was before ``plain``: the words for NaN and infinity are numbers again."""
    if isinstance(value, str):
        return _NOT_FINITE.get(value, value)
    if isinstance(value, Mapping):
        return {key: _restored(item) for key, item in value.items()}
    return [_restored(item) for item in value] if isinstance(value, list) else value


def _flat(value: Any) -> Any:
    if isinstance(value, str) and value in _NOT_FINITE:
        raise ValueError(f"the word {value!r} in a table would be read back as a number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("a row of a table holds numbers, words, yes or no, or nothing")


Entry: TypeAlias = Annotated[Any, pydantic.AfterValidator(_flat)]
Table: TypeAlias = list[dict[str, Entry]]
"""Flat rows, each a dictionary from column to a plain value; a column may be absent from a row."""


class Summary(FrozenModel):
    """The tables of a run; a subclass adds a field for each quantity that claims or figures need beside them.

    Example:
        >>> class Measured(Summary):
        ...     slope: float
        >>> found = Measured(slope=2.0, tables={"Losses": [{"step": 0, "loss": 1.5}]})
        >>> found.table("Loses")
        Traceback (most recent call last):
        separatrix.core.errors.InvalidInput: unknown table 'Loses'. Did you mean 'Losses'? Known: Losses.
    """

    tables: dict[str, Table] = pydantic.Field(default_factory=dict)
    """Rows by title, in the order in which pages print them."""

    def table(self, title: str) -> Table:
        """The rows of one table."""
        return resolve("table", title, self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, tables last."""
        values = {name: plain(value) for name, value in self.model_dump().items()}
        return {**{name: value for name, value in values.items() if name != "tables"}, "tables": values["tables"]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Summary:
        """The inverse of ``to_dict``.

        Raises:
            CorruptData: a quantity is missing, unknown or of the wrong type.
        """
        try:
            return cls(**{name: _restored(value) for name, value in values.items()})
        except InvalidInput as error:
            raise CorruptData(f"summary: {error}") from None
