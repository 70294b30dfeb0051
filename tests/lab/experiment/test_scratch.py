from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from scratch_experiment import COUNTING
from separatrix.lab import LocalEngine, Store, compute_record, scratch_folder


def counting_cell(n_steps: int = 6, stop_at: int = -1) -> Any:
    (cell,) = COUNTING.cells(COUNTING.params("smoke", n_steps=n_steps, stop_at=stop_at))
    return cell


def test_a_cell_run_by_hand_has_no_folder() -> None:
    assert scratch_folder(counting_cell()) is None
    assert compute_record(counting_cell(), {}).payload["total"] == 15


def test_a_killed_cell_goes_on_where_it_was(tmp_path: Path) -> None:
    cell = counting_cell(stop_at=4)
    with pytest.raises(KeyboardInterrupt):
        compute_record(cell, {}, tmp_path)
    assert (tmp_path / cell.key / "count").read_text() == "4 6"  # 0 + 1 + 2 + 3, four steps done
    assert compute_record(cell, {}, tmp_path).payload == {"total": 15}
    assert scratch_folder(cell) is None  # outside, nothing is left of it


def test_the_folder_goes_when_the_record_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    store = Store(tmp_path)
    cell = counting_cell()
    assert [finished.error for finished in LocalEngine(1).run([cell], store, {})] == [None]
    record = store.read(cell.key)
    assert record is not None
    assert record.payload["total"] == 15
    assert not (store.scratch / cell.key).exists()


def test_a_dead_worker_leaves_its_checkpoint_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    monkeypatch.setenv("SCRATCH_EXPERIMENT_DIES", "1")
    store = Store(tmp_path)
    cell = counting_cell(stop_at=3)
    assert [finished.error for finished in LocalEngine(1).run([cell], store, {})] == [None]
    record = store.read(cell.key)
    assert record is not None
    assert record.payload["total"] == 15
    assert not (store.scratch / cell.key).exists()


def test_a_worker_killed_after_publishing_leaves_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in sys.path if path))
    monkeypatch.setenv("SCRATCH_EXPERIMENT_DIES", "untidy")
    store = Store(tmp_path)
    cell = counting_cell()
    store.log_of(cell.key).parent.mkdir(parents=True, exist_ok=True)
    store.log_of(cell.key).write_text("of an earlier start")
    assert [finished.error for finished in LocalEngine(1).run([cell], store, {})] == [None]
    assert not (store.scratch / cell.key).exists()
    assert not store.log_of(cell.key).exists()
