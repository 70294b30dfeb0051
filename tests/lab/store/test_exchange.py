from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from separatrix.core import CorruptData, InvalidInput
from separatrix.lab import Record, Store, best_report, export_archive, import_archive, merge, stored_runs
from short_experiments import SHORT, run_inline

CELLS = SHORT.cells(SHORT.params("smoke"))


@pytest.fixture
def full(tmp_path: Path) -> Store:
    store = Store(tmp_path / "full")
    run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    return store


def test_a_store_travels_in_one_file(full: Store, tmp_path: Path) -> None:
    assert export_archive(full, tmp_path / "a.zip") == 4
    with Store(tmp_path / "other") as other:
        taken = import_archive(other, tmp_path / "a.zip")
        assert (taken.n_new, taken.n_equal, taken.conflicts, taken.damaged) == (4, 0, (), ())
        assert other.keys() == full.keys()
        assert stored_runs(other, SHORT)[0].keys == stored_runs(full, SHORT)[0].keys
        assert best_report(SHORT, other) is not None
        assert import_archive(other, tmp_path / "a.zip").n_equal == 4


def test_merging_keeps_both_provenances_and_says_where_results_differ(full: Store, tmp_path: Path) -> None:
    with Store(tmp_path / "other") as other:
        same, another = full.read(CELLS[0].key), full.read(CELLS[1].key)
        assert same is not None
        assert another is not None
        other.write(Record(same.cell, same.payload, {**same.provenance, "machine": {"name": "elsewhere"}}))
        other.write(Record(another.cell, {**another.payload, "mean": 7.0}, another.provenance))
        for _ in range(2):  # once more changes nothing
            taken = merge(full, other)
            assert (taken.n_new, taken.n_equal, taken.conflicts) == (0, 1, (CELLS[1].key,))
            joined = full.read(CELLS[0].key)
            assert joined is not None
            assert [origin["machine"] for origin in joined.provenance["also"]] == [{"name": "elsewhere"}]
            assert joined.provenance["machine"] == same.provenance["machine"]
            assert joined.digest == same.digest
        kept = full.read(CELLS[1].key)
        assert kept is not None
        assert kept.digest == another.digest
    with pytest.raises(InvalidInput, match="with itself"):
        merge(full, full)


def test_what_is_no_export_is_refused_and_damaged_records_left_out(full: Store, tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"PK nonsense")
    with pytest.raises(CorruptData, match="is not an exported store"):
        import_archive(full, tmp_path / "no.zip")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as archive:
        archive.writestr("records/../../outside.json", "{}")
        archive.writestr("records/x.json", "{}")
        archive.writestr("runs/../x.json", "{}")
        archive.writestr("runs/x.json", "{}")
    with Store(tmp_path / "other") as other:
        assert import_archive(other, tmp_path / "odd.zip").damaged == ("x", "x")
    assert not (tmp_path / "outside.json").exists()
