from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backwards_engine import BackwardsEngine
from separatrix.core.errors import InvalidInput
from separatrix.lab import (
    Cell,
    EngineError,
    Experiment,
    Finished,
    JobTable,
    LocalEngine,
    Record,
    RunInterrupted,
    Store,
    physical_cores,
)
from separatrix.lab.engines.worker_pool import WorkerPool
from short_experiments import SHORT, UNWRITABLE
from training_experiment import STEPS, TRAINING


def cells_of(experiment: Experiment = SHORT, **changes: Any) -> list[Cell]:
    return experiment.cells(experiment.params("smoke", **changes))


def run_all(cells: list[Cell], store: Store, jobs: int = 1, **options: Any) -> list[Finished]:
    return list(LocalEngine(jobs, **options).run(cells, store, {}))


def digests(cells: list[Cell], store: Store) -> list[str]:
    records = [store.read(cell.key) for cell in cells]
    assert all(record is not None for record in records)
    return [record.digest for record in records if record is not None]


def computations(marks: Path) -> list[str]:
    return sorted(marks.read_text().split())


def test_records_are_the_same_whatever_the_number_of_workers(tmp_path: Path) -> None:
    cells = cells_of(n_cells=6)
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert len(run_all(cells, one, 1)) == len(run_all(cells, two, 2)) == 6
    assert digests(cells, one) == digests(cells, two)


def test_an_exception_is_recorded_once_and_the_other_cells_are_kept(tmp_path: Path) -> None:
    store, marks = Store(tmp_path / "store"), tmp_path / "marks"
    cells = cells_of(fail_at=1, marks=str(marks))
    ended = {finished.key: finished.error for finished in run_all(cells, store)}
    error = ended.pop(cells[1].key)
    assert error is not None
    assert error.startswith("ValueError: the cell was told to fail\n")
    assert "short_experiments.py" in error
    assert set(ended.values()) == {None}
    assert computations(marks) == ["0", "1", "2", "3"]
    Path(f"{marks}.mended").touch()
    assert run_all(cells[1:2], store) == [Finished(cells[1].key)]


def test_a_cell_that_kills_its_worker_is_given_up_as_worker_lost(tmp_path: Path) -> None:
    store, marks = Store(tmp_path / "store"), tmp_path / "marks"
    cells = cells_of(n_cells=2, die_at=0, marks=str(marks))
    ended = {finished.key: finished.error for finished in run_all(cells, store)}
    lost = ended.pop(cells[0].key)
    assert lost is not None
    assert lost.startswith("worker lost: its process ended with exit code 9, in each of 4 starts\n")
    assert ended == {cells[1].key: None}
    assert computations(marks) == ["0", "0", "0", "0", "1"]


def test_a_payload_that_cannot_be_written_is_an_error_of_its_cell(tmp_path: Path) -> None:
    (finished,) = run_all(cells_of(UNWRITABLE, n_cells=1), Store(tmp_path))
    assert finished.error is not None
    assert "InvalidInput: a payload may hold numbers" in finished.error


def test_two_runs_at_once_compute_no_cell_twice(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    cells = cells_of(n_cells=10, pause=0.05, marks=str(marks))
    ended: list[list[Finished]] = []

    def one_run() -> None:
        with Store(tmp_path / "store") as store:
            ended.append(run_all(cells, store))

    runs = [threading.Thread(target=one_run) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [sorted(finished.key for finished in run) for run in ended] == [sorted(cell.key for cell in cells)] * 2
    assert computations(marks) == sorted(str(number) for number in range(10))


@pytest.mark.slow
def test_a_worker_killed_again_and_again_costs_one_start_each_and_loses_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    cells = cells_of(n_cells=24, pause=0.03)
    engine, chooser, kills, over = LocalEngine(2), random.Random(0), [0], threading.Event()

    def kill() -> None:
        while not over.wait(0.01):
            pids = engine.worker_pids
            if pids and len(list(store.folder.glob("records/*/*.json"))) >= 8 * kills[0] + 4:
                os.kill(chooser.choice(pids), signal.SIGKILL)
                kills[0] += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        ended = list(engine.run(cells, store, {}))
    finally:
        over.set()
        killer.join()
    assert sorted(finished.key for finished in ended) == sorted(cell.key for cell in cells)
    assert {finished.error for finished in ended} == {None}
    assert len(digests(cells, store)) == len(store.keys()) == 24
    assert kills[0] >= 2
    assert sum(JobTable(store).starts().values()) <= 24 + kills[0]


def test_a_silent_worker_loses_its_cell_to_another(tmp_path: Path) -> None:
    store = Store(tmp_path)
    cells = cells_of(n_cells=2, pause=0.6)
    engine = LocalEngine(2, lease_seconds=1.0)
    run = engine.run(cells, store, {})
    stopped = threading.Thread(target=_freeze_first_leaseholder, args=(engine, store))
    stopped.start()
    assert sorted(finished.key for finished in run) == sorted(cell.key for cell in cells)
    stopped.join()
    assert max(JobTable(store).starts().values()) == 2


def _freeze_first_leaseholder(engine: LocalEngine, store: Store) -> None:
    os.kill(int(_wait_for_lease(store).split("|")[-2]), signal.SIGSTOP)


def _wait_for_lease(store: Store) -> str:
    """The first worker that holds a cell."""
    with Store(store.folder) as own:
        while not (leased := own.database.query("SELECT worker FROM jobs WHERE state = 'leased'")):
            time.sleep(0.01)
    return str(leased[0][0])


def test_an_interrupt_finishes_the_present_cells_and_keeps_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    cells = cells_of(n_cells=30, pause=0.2)
    before = signal.getsignal(signal.SIGINT)
    run = LocalEngine(2).run(cells, store, {})
    done = [next(run)]
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(RunInterrupted, match="of 30 cells; finished cells are kept"):
        done.extend(run)
    assert 1 <= len(store.keys()) < 30
    assert JobTable(store).states().keys() == {"done", "cancelled"}
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_one_interrupt_of_any_kind_is_enough_however_long_a_cell_takes(tmp_path: Path, kind: str) -> None:
    cells = cells_of(n_cells=2, pause=600.0)  # longer than the patience of the suite
    store = Store(tmp_path)

    def interrupt() -> None:
        _wait_for_lease(store)
        os.kill(os.getpid(), getattr(signal, kind))

    threading.Thread(target=interrupt).start()
    with pytest.raises(RunInterrupted, match="stopped after 0 of 2 cells") as caught:
        list(LocalEngine(1).run(cells, store, {}))
    assert caught.value.exit_code == 128 + getattr(signal, kind)
    assert JobTable(store).states() == {"cancelled": 2}


@pytest.mark.parametrize("experiment", [STEPS, pytest.param(TRAINING, marks=pytest.mark.slow)], ids=lambda e: e.name)
def test_work_that_is_stopped_goes_on_where_it_was(experiment: Experiment, tmp_path: Path) -> None:
    """It saves after its step although no checkpoint was due; a worker hears of the stop by a signal too. A training
    does, with torch in each of three workers; every day it is a loop of our own that saves and stops as ``train`` does,
    whose part is tested in ``tests/training/test_interrupt.py``."""
    whole, store = Store(tmp_path / "whole"), Store(tmp_path / "store")
    (cell,) = cells_of(experiment)
    list(BackwardsEngine().run([cell], whole, {}))

    def reached(step: int) -> Path:
        while not (found := list(store.scratch.glob(f"*/step-{step}"))):
            time.sleep(0.01)
        return found[0].with_name(f"seen-{step}")

    def interrupt() -> None:
        seen, worker = reached(3), _wait_for_lease(store)
        os.kill(int(worker.split("|")[-2]), signal.SIGINT)  # as a batch queue does; the engine is not told
        seen.touch()
        seen = reached(6)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.2)  # the word goes round
        seen.touch()

    threading.Thread(target=interrupt).start()
    with pytest.raises(RunInterrupted, match="stopped after 0 of 1 cells"):
        run_all([cell], store)
    assert run_all([cell], store) == [Finished(cell.key)]
    found, wanted = store.read(cell.key), whole.read(cell.key)
    assert found is not None
    assert wanted is not None
    assert found.payload["history"] == wanted.payload["history"]
    assert found.payload["resumed_at"] in (4, 7)  # the second time a slow machine may have had to end it
    assert wanted.payload["resumed_at"] == 0


def test_a_record_published_at_the_last_moment_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look at the table and the end of the workers a cell may end; the count must know of it."""
    store, cells = Store(tmp_path), cells_of(n_cells=2, pause=600.0)
    plain = WorkerPool.end

    def publish_and_end(pool: WorkerPool) -> None:
        table = JobTable(store)
        for process in pool._running:
            for lease in table.held(process.name):
                table.finish(lease, Record(lease.cell, {"mean": 0.0, "number": lease.cell.args["number"]}, {}))
        plain(pool)

    def interrupt_twice() -> None:
        _wait_for_lease(store)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(WorkerPool, "end", publish_and_end)
    threading.Thread(target=interrupt_twice).start()
    ended: list[Finished] = []
    with pytest.raises(RunInterrupted, match="stopped after 1 of 2 cells"):
        ended.extend(LocalEngine(1).run(cells, store, {}))
    assert {finished.key for finished in ended} == store.keys()
    assert len(ended) == 1


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    cells = cells_of(n_cells=2, pause=600.0)  # longer than the patience of the suite: waiting for them would fail
    store = Store(tmp_path)
    run = LocalEngine(2).run(cells, store, {})

    def interrupt_twice() -> None:
        _wait_for_lease(store)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)  # another one: two of a kind at once may count as one

    threading.Thread(target=interrupt_twice).start()
    with pytest.raises(RunInterrupted, match="stopped after 0 of 2 cells"):
        list(run)


def test_abandoning_a_run_ends_its_workers(tmp_path: Path) -> None:
    engine = LocalEngine(2)
    run = engine.run(cells_of(n_cells=20, pause=0.1), Store(tmp_path), {})
    next(run)
    pids = engine.worker_pids
    run.close()  # type: ignore[attr-defined]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_workers_that_cannot_start_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(EngineError, match="worker processes end as soon as they start"):
        run_all(cells_of(n_cells=1), Store(tmp_path / "store"))


def test_an_experiment_of_the_main_program_is_refused_with_advice(tmp_path: Path) -> None:
    cell = Cell("mine", 1, {}, 0, "__main__:mine")
    with pytest.raises(InvalidInput, match="put it into a module of its own"):
        run_all([cell], Store(tmp_path))


def test_the_number_of_workers_is_at_least_one() -> None:
    assert LocalEngine().jobs == physical_cores() >= 1
    with pytest.raises(InvalidInput, match="jobs must be an integer of at least 1; got 0"):
        LocalEngine(0)


def test_data_digests_reach_the_provenance(tmp_path: Path) -> None:
    store, cells = Store(tmp_path), cells_of(n_cells=1)
    known: Mapping[str, str] = {"mnist": "abc", "other": "def"}
    list(LocalEngine(1).run(cells, store, known))
    record = store.read(cells[0].key)
    assert record is not None
    assert record.provenance["data"] == {"mnist": "abc", "ptb": "not recorded"}
