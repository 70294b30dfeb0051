from __future__ import annotations

import csv
from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.lab import Store, export_table
from separatrix.lab.store.tables import one_kind
from short_experiments import SHORT, run_inline


def test_records_become_a_table_that_other_programs_read(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
        assert export_table(store, tmp_path / "a.csv") == 4
        assert export_table(store, tmp_path / "b.csv", {"other"}) == 0
        with pytest.raises(InvalidInput, match=r"FILE\.csv or FILE\.parquet"):
            export_table(store, tmp_path / "a.xls")
        expected = {key: store.read(key) for key in sorted(store.keys())}
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["key"] for row in rows} == set(expected)
    for row in rows:
        record = expected[row["key"]]
        assert record is not None
        assert float(row["payload.mean"]) == record.payload["mean"]
        assert row["args.number"] == str(record.cell.args["number"])
        assert "payload.product" not in row


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([1, None, 2.5], [1.0, None, 2.5]),
        ([True, None, 2], ["true", None, "2"]),
        (["a", 1.5], ["a", "1.5"]),
        ([10**30, 1], ["1000000000000000000000000000000", "1"]),
        ([None, None], [None, None]),
        ([True, False], [True, False]),
    ],
)
def test_a_column_has_one_kind_of_value(values: list[object], kept: list[object]) -> None:
    """A file of columns refuses a column that holds truth values in one experiment and counts in another."""
    assert one_kind(values) == kept
    assert list(map(type, one_kind(values))) == list(map(type, kept))


def test_a_parquet_file_holds_what_the_csv_file_does(tmp_path: Path) -> None:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    with Store(tmp_path / "store") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
        assert export_table(store, tmp_path / "x.parquet") == export_table(store, tmp_path / "x.csv") == 4
    frame, text = pandas.read_parquet(tmp_path / "x.parquet"), pandas.read_csv(tmp_path / "x.csv")
    assert list(frame.columns) == list(text.columns)
    assert list(frame["payload.mean"]) == pytest.approx(list(text["payload.mean"]))
