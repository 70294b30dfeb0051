from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from separatrix.lab import Cell, JobTable, Lease, Record, Store
from separatrix.lab.engines.process_names import process_name
from short_experiments import SHORT

CELLS = SHORT.cells(SHORT.params("smoke"))
ME = process_name(os.getpid())
"""A session and a worker that are alive while the test is."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def record(cell: Cell, value: float = 1.0) -> Record:
    return Record(cell, {"x": value}, {})


def taken(table: JobTable, worker: str = ME) -> Lease:
    lease = table.take(ME, worker)
    assert lease is not None
    return lease


def test_jobs_are_taken_in_order_and_each_once(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS)
    assert [taken(table).cell.key for _ in CELLS] == [cell.key for cell in CELLS]
    assert table.take(ME, ME) is None
    assert table.states() == {"leased": 4}


def test_a_finished_job_is_reported_once_and_has_a_record(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    assert table.finish(taken(table), record(CELLS[0]))
    assert table.collect(ME) == [(CELLS[0].key, None)]
    assert table.collect(ME) == []
    assert store.read(CELLS[0].key) == record(CELLS[0])


def test_a_failed_job_keeps_its_error_and_is_tried_again_by_the_next_run(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    table.fail(taken(table), "ValueError: no")
    assert table.collect(ME) == [(CELLS[0].key, "ValueError: no")]
    assert table.take(ME, ME) is None
    table.enqueue(ME, CELLS[:1])
    assert taken(table).cell == CELLS[0]


def test_two_runs_share_one_table(store: Store) -> None:
    table, other = JobTable(store), process_name(os.getpid())
    table.enqueue(ME, CELLS[:1])
    lease = taken(table)
    table.enqueue(other, CELLS[:1])
    assert table.take(other, "w|1|b") is None
    assert table.open_jobs(other) == 1
    table.finish(lease, record(CELLS[0]))
    assert table.collect(other) == [(CELLS[0].key, None)]
    assert table.starts() == {CELLS[0].key: 1}


def test_a_job_with_a_record_is_not_queued_again(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    table.finish(taken(table), record(CELLS[0]))
    table.enqueue(process_name(os.getpid()), CELLS[:1])
    assert table.states() == {"done": 1}


AWAY = "another machine|0|1|0-a"
"""A worker of whose process nothing can be known here."""


class Clock:
    """A clock that stands still unless a test moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def watched(table: JobTable, clock: Clock, seconds: float) -> None:
    """Let time pass under the eyes of an observer that looks every five seconds."""
    for _ in range(round(seconds / 5)):
        clock.now += 5
        table.expire()


def test_a_lease_without_a_sign_of_life_returns_to_the_queue_and_is_void(store: Store) -> None:
    clock = Clock()
    table = JobTable(store, 30.0, clock)
    table.enqueue(ME, CELLS[:1])
    first = taken(table, AWAY)
    watched(table, clock, 30)
    assert table.holds(first)
    watched(table, clock, 10)
    second = taken(table, AWAY)
    assert second.start == 2
    assert not table.holds(first)
    assert table.holds(second)


def test_signs_of_life_keep_a_lease(store: Store) -> None:
    clock = Clock()
    table = JobTable(store, 30.0, clock)
    table.enqueue(ME, CELLS[:1])
    lease = taken(table, AWAY)
    for _ in range(4):
        watched(table, clock, 20)
        table.renew(AWAY)
    assert table.holds(lease)


def test_an_observer_that_slept_takes_nothing_away(store: Store) -> None:
    clock = Clock()
    table = JobTable(store, 30.0, clock)
    table.enqueue(ME, CELLS[:1])
    lease = taken(table, AWAY)
    watched(table, clock, 10)
    clock.now += 100_000  # the lid was closed, or the process stopped
    table.expire()
    assert table.holds(lease)


def test_a_worker_that_lives_on_this_machine_is_never_silent(store: Store) -> None:
    clock = Clock()
    table = JobTable(store, 30.0, clock)
    table.enqueue(ME, CELLS[:1])
    lease = taken(table)
    watched(table, clock, 500)
    assert table.holds(lease)


def test_a_worker_whose_lease_was_taken_away_publishes_nothing(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    slow = taken(table)
    table.release(ME, "killed")
    quick = taken(table)
    assert table.finish(quick, record(CELLS[0], 1.0))
    assert not table.finish(slow, record(CELLS[0], 2.0))
    table.fail(slow, "too late")
    assert store.read(CELLS[0].key) == record(CELLS[0], 1.0)
    assert table.states() == {"done": 1}
    assert list(store.folder.rglob("*.tmp")) == []


def test_the_fourth_lost_worker_fails_the_job(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    for _ in range(4):
        taken(table)
        table.release(ME, "killed")
    assert table.take(ME, ME) is None
    assert table.collect(ME) == [(CELLS[0].key, "worker lost: killed, in each of 4 starts")]
    assert table.starts() == {CELLS[0].key: 4}


def test_giving_a_job_back_is_not_a_lost_attempt(store: Store) -> None:
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    for _ in range(10):
        table.give_back(taken(table))
    assert table.states() == {"queued": 1}


def test_leaving_cancels_what_nobody_else_wants(store: Store) -> None:
    table, other = JobTable(store), process_name(os.getpid())
    table.enqueue(ME, CELLS[:2])
    table.enqueue(other, CELLS[1:2])
    table.leave(ME)
    assert table.states() == {"cancelled": 1, "queued": 1}
    table.enqueue(ME, CELLS[:1])
    assert taken(table).cell == CELLS[0]


def test_jobs_and_sessions_of_dead_processes_are_freed(store: Store) -> None:
    process = subprocess.Popen(["sleep", "60"])
    table, doomed = JobTable(store), process_name(process.pid)
    table.enqueue(doomed, CELLS[:2])
    assert table.take(doomed, doomed) is not None
    table.enqueue(ME, CELLS[:1])
    assert table.take(ME, ME) is None
    process.kill()
    process.wait()
    table.enqueue(process_name(os.getpid()), CELLS[1:2])
    assert taken(table).cell == CELLS[0]
    assert table.open_jobs(doomed) == 0


@pytest.mark.parametrize(("seconds", "waits"), [(0.001, 1), (2.0, 2)])
def test_nobody_else_waits_for_the_disk_and_a_short_cell_waits_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, seconds: float, waits: int
) -> None:
    """The disk is never waited for while the index is locked; a name is worth a wait if the cell was."""
    locked: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda handle: locked.append(store.database._connection.in_transaction))
    table = JobTable(store)
    table.enqueue(ME, CELLS[:1])
    assert table.finish(taken(table), Record(CELLS[0], {"x": 1.0}, {"seconds": seconds}))
    assert locked == [False] * waits


def test_a_client_killed_again_and_again_fails_no_job(store: Store) -> None:
    """A Dask client holds the leases of all cells in flight, most of which no worker has begun."""
    for _ in range(6):
        client = subprocess.Popen(["sleep", "60"])
        table, doomed = JobTable(store), process_name(client.pid)
        table.enqueue(doomed, CELLS[:1])
        assert table.take(doomed, doomed) is not None
        client.kill()
        client.wait()
    session = process_name(os.getpid())
    table.enqueue(session, CELLS[:1])
    assert table.collect(session) == []
    assert table.states() == {"queued": 1}
