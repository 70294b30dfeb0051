from __future__ import annotations

import csv
from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.lab import Store, export_table
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
