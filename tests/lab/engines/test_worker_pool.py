"""What cells may do to their worker, and what the engine makes of it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from separatrix.core.errors import StoreError
from separatrix.lab import Cell, Finished, Limits, LocalEngine, Store
from separatrix.lab.engines.worker_process import WorkerProcess
from trouble_experiments import TROUBLE


def cells_of(*kinds: str, **changes: Any) -> list[Cell]:
    return TROUBLE.cells(TROUBLE.params("smoke", kinds=kinds, **changes))


def run_all(cells: list[Cell], store: Store, jobs: int = 1, **options: Any) -> list[Finished]:
    return list(LocalEngine(jobs, **options).run(cells, store, {}))


def logs(store: Store) -> list[str]:
    return sorted(path.name for path in store.logs.iterdir())


def test_cells_may_print_fork_and_leave_children_behind(tmp_path: Path) -> None:
    store = Store(tmp_path)
    cells = cells_of("print", "child", "fork", "calm", amount=200_000)
    assert {finished.error for finished in run_all(cells, store)} == {None}
    assert len(store.keys()) == 4
    assert logs(store) == []


def test_a_cell_that_reads_standard_input_finds_it_empty(tmp_path: Path) -> None:
    assert [finished.error for finished in run_all(cells_of("stdin"), Store(tmp_path))] == [None]


def test_the_output_of_a_failed_cell_is_kept(tmp_path: Path) -> None:
    store, cells = Store(tmp_path), cells_of("fail", "calm")
    run_all(cells, store)
    assert logs(store) == [f"{cells[0].key}.log"]
    assert "a word before" in (store.logs / f"{cells[0].key}.log").read_text()


def test_a_cell_that_holds_the_interpreter_is_not_lost(tmp_path: Path) -> None:
    store, marks = Store(tmp_path / "store"), tmp_path / "marks"
    cells = cells_of("gil", amount=4.5, marks=str(marks))
    assert [finished.error for finished in run_all(cells, store, lease_seconds=2.0)] == [None]
    assert marks.read_text() == "gil\n"


def test_a_lost_worker_is_told_with_signal_and_last_words(tmp_path: Path) -> None:
    store, cells = Store(tmp_path), cells_of("die", amount=float(signal.SIGABRT))
    (finished,) = run_all(cells, store)
    assert finished.error is not None
    first, *rest = finished.error.splitlines()
    assert first == "worker lost: its process was ended by signal 6 (SIGABRT), in each of 4 starts"
    assert "last words" in "\n".join(rest)
    assert 'File "' in "\n".join(rest)  # where it was
    assert logs(store) == [f"{cells[0].key}.log"]


def test_a_hung_cell_is_stopped_and_the_rest_goes_on(tmp_path: Path) -> None:
    store, marks = Store(tmp_path / "store"), tmp_path / "marks"
    cells = cells_of("sleep", "calm", amount=600.0, marks=str(marks))
    ended = {finished.key: finished.error for finished in run_all(cells, store, limits=Limits(seconds=3.0))}
    assert ended.pop(cells[1].key) is None
    (error,) = ended.values()
    assert error is not None
    assert error.splitlines()[0] == "time limit: stopped because it ran longer than 3 s"
    assert "trouble_experiments.py" in error  # the traceback of where it hung
    assert marks.read_text() == "sleep\ncalm\n"  # once: it would only hang again


@pytest.mark.slow
def test_a_leaking_cell_is_stopped_before_it_takes_the_machine(tmp_path: Path) -> None:
    cells = cells_of("leak", "calm", amount=0.02)
    ended = {finished.key: finished.error for finished in run_all(cells, Store(tmp_path), limits=Limits(memory=400e6))}
    error = ended[cells[0].key]
    assert error is not None
    assert error.startswith("memory limit: stopped because it held more than 0.4 GB")
    assert ended[cells[1].key] is None


@pytest.mark.parametrize("bad", [{"seconds": 0}, {"seconds": float("nan")}, {"memory": -1.0}])
def test_limits_are_positive(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        Limits(**bad)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_worker_that_finds_no_room_for_its_log_tells_of_the_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = WorkerProcess._started
    with open("/dev/full", "wb") as full:
        monkeypatch.setattr(WorkerProcess, "_started", lambda self, log: plain(self, full.fileno()))
        with pytest.raises(StoreError, match="no space left on the disk of the store"):
            run_all(cells_of("calm"), Store(tmp_path))
