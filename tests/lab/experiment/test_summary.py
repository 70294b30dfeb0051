from __future__ import annotations

import json
import math

import pydantic
import pytest

from separatrix.core.errors import CorruptData, InvalidInput, UnknownOption
from separatrix.lab import Summary


class Measured(Summary):
    slope: float
    counts: dict[str, int] = pydantic.Field(default_factory=dict)


MADE = Measured(slope=1.5, counts={"a": 2}, tables={"Losses": [{"step": 0, "loss": 0.5}, {"step": 1, "note": None}]})


def test_a_misspelt_quantity_is_an_error_where_it_is_written_and_where_it_is_read() -> None:
    with pytest.raises(UnknownOption, match="Did you mean 'slope'"):
        Measured(slope=1.0, slop=2.0)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="slop"):
        _ = MADE.slop  # type: ignore[attr-defined]


def test_a_misspelt_title_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"unknown table 'Loses'. Did you mean 'Losses'"):
        MADE.table("Loses")


def test_a_missing_quantity_is_an_error() -> None:
    with pytest.raises(InvalidInput, match=r"slope of Measured: field required; got \{'tables': \{\}\}\."):
        Measured(tables={})  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, object()])
def test_rows_of_tables_are_flat(value: object) -> None:
    with pytest.raises(InvalidInput, match="a row of a table holds numbers, words"):
        Summary(tables={"Losses": [{"step": value}]})


def test_a_summary_cannot_be_changed() -> None:
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        MADE.slope = 2.0


def test_json_keeps_a_summary_and_puts_tables_last() -> None:
    text = json.dumps(MADE.to_dict(), allow_nan=False)
    assert list(json.loads(text)) == ["slope", "counts", "tables"]
    assert Measured.from_dict(json.loads(text)) == MADE


def test_a_quantity_that_is_no_number_survives_json() -> None:
    text = json.dumps(Measured(slope=math.nan).to_dict(), allow_nan=False)
    read = Measured.from_dict(json.loads(text))
    assert isinstance(read, Measured)
    assert math.isnan(read.slope)


def test_values_keep_their_types_in_tables() -> None:
    row = {"yes": True, "count": 3, "share": 3.0, "word": "3", "nothing": None}
    (kept,) = Summary(tables={"Rows": [row]}).table("Rows")
    assert [type(kept[name]) for name in row] == [type(value) for value in row.values()]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"tables": {}}, "summary: slope of Measured: field required"),
        ({"slope": "steep"}, "summary: slope of Measured: input should be a valid number, .*; got 'steep'"),
        ({"slope": 1.0, "other": 1}, "summary: unknown option of Measured 'other'"),
    ],
)
def test_a_file_of_another_shape_is_one_sentence(values: dict[str, object], said: str) -> None:
    with pytest.raises(CorruptData, match=said):
        Measured.from_dict(values)
