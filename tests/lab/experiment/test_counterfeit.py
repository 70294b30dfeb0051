from __future__ import annotations

import pytest

from separatrix.core.errors import InvalidInput
from separatrix.lab import Summary, in_turn, with_column, with_fields


class Measured(Summary):
    slope: float
    rows: list[dict[str, float]]


REAL = Measured(slope=2.0, rows=[{"x": 1.0}, {"x": 2.0}], tables={"Losses": [{"step": 0, "loss": 1.5}, {"step": 1}]})


def test_fields_are_set_or_changed_by_a_function_of_what_was_measured() -> None:
    assert with_fields(slope=3.0)(REAL).slope == 3.0
    assert with_fields(slope=lambda slope: -slope)(REAL).slope == -2.0
    assert REAL.slope == 2.0


def test_a_column_is_changed_in_a_field_or_a_table() -> None:
    doubled = with_column("rows", "x", lambda row: 2 * row["x"], where=lambda row: row["x"] > 1)
    assert doubled(REAL).rows == [{"x": 1.0}, {"x": 4.0}]
    assert with_column("Losses", "loss", 0.0)(REAL).tables["Losses"] == [{"step": 0, "loss": 0.0}, {"step": 1}]


def test_several_changes_are_made_in_turn() -> None:
    assert in_turn(with_fields(slope=1.0), with_fields(slope=lambda slope: slope + 1))(REAL).slope == 2.0


def test_a_counterfeit_that_changes_nothing_or_misses_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="changes nothing"):
        with_column("rows", "x", 1.0, where=lambda row: row["x"] > 9)(REAL)
    with pytest.raises(InvalidInput, match="unknown column of rows 'y'"):
        with_column("rows", "y", 1.0)(REAL)
    with pytest.raises(InvalidInput, match="unknown field of Measured 'slop'"):
        with_fields(slop=1.0)(REAL)
    with pytest.raises(InvalidInput, match="unknown table 'Loses'"):
        with_column("Loses", "loss", 1.0)(REAL)
