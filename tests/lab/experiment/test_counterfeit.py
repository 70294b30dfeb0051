from __future__ import annotations

import pytest

from separatrix.core.errors import InvalidInput
from separatrix.lab import Summary, in_turn, with_column, with_fields, with_interval, with_interval_at


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


INTERVALS = Summary(
    tables={
        "Gaps": [
            {"model": "a", "gap": 0.5, "low": 0.25, "high": 1.0, "own_low": 0.0, "own_high": 0.0},
            {"model": "b", "gap": 2.0, "low": 1.0, "high": 4.0, "own_low": 1.0, "own_high": 1.0},
        ]
    }
)


def test_intervals_are_put_elsewhere_in_the_rows_that_are_meant() -> None:
    first, second = INTERVALS.table("Gaps")
    moved = with_interval("Gaps", -2.0, -1.0, {"model": "b"}, middle="gap")(INTERVALS).table("Gaps")
    assert moved == [first, {**second, "gap": -1.5, "low": -2.0, "high": -1.0}]
    others = with_interval("Gaps", 7.0, 8.0, {"model": ("a", "c")}, prefix="own_")(INTERVALS).table("Gaps")
    assert others == [{**first, "own_low": 7.0, "own_high": 8.0}, second]


def test_estimates_are_put_elsewhere_with_intervals_as_wide_as_before() -> None:
    moved = with_interval_at("Gaps", "gap", -1.0)(INTERVALS).table("Gaps")
    assert [(row["gap"], row["low"], row["high"]) for row in moved] == [(-1.0, -1.25, -0.5), (-1.0, -2.0, 1.0)]


def test_rows_that_hold_no_such_value_are_not_changed_silently() -> None:
    with pytest.raises(InvalidInput, match="changes nothing"):
        with_interval("Gaps", 0.0, 1.0, {"model": "c"})(INTERVALS)


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
