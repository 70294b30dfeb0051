"""The job table: which cell is queued, leased, done, failed or cancelled, and who works on it.

Every run on a store uses the same table, so two runs at once share the work: a cell leased by one is waited for by the
other. Which jobs a run waits for is kept per session (one call of an engine). A job is at least once started and at
most once published: a record gets its final name inside the transaction that checks the lease.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import time
import uuid
from collections.abc import Sequence
from typing import final

from separatrix.core.names import suggest_options

from ..experiment.cell import Cell
from ..experiment.record import Record
from ..store.records import Store

LEASE_SECONDS = 30.0
MAX_ATTEMPTS = 3
WORKER_LOST = "worker lost"


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Lease:
    """The right of one worker to compute and publish one cell, until it expires or is taken away."""

    cell: Cell
    worker: str
    start: int
    """Which start of this job it is; a later start voids the lease."""


@final
@suggest_options
class JobTable:
    """The jobs of a store.

    Args:
        store: where the records go.
        lease_seconds: how long a lease lasts without renewal.
    """

    def __init__(self, store: Store, lease_seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._database = store.database
        self._lease_seconds = lease_seconds

    def enqueue(self, session: str, cells: Sequence[Cell]) -> None:
        """Queue the cells that have no record, and note that the session waits for all of them.

        Failed and cancelled jobs are tried again; jobs of workers of this machine that have ended are freed.
        """
        with self._database.transaction() as connection:
            for position, cell in enumerate(cells):
                connection.execute(
                    """INSERT INTO jobs (key, cell, state) VALUES (?1, ?2, 'queued') ON CONFLICT (key) DO UPDATE
                       SET state = 'queued', cell = ?2, worker = NULL, attempts = 0, error = NULL
                       WHERE state IN ('queued', 'failed', 'cancelled')
                       OR state = 'done' AND key NOT IN (SELECT key FROM records)""",
                    (cell.key, cell.to_json()),
                )
                connection.execute("INSERT INTO wants VALUES (?, ?, ?)", (session, position, cell.key))
        for (worker,) in self._database.query("SELECT DISTINCT worker FROM jobs WHERE state = 'leased'"):
            if _is_gone(worker):
                self.release(worker)
        for (other,) in self._database.query("SELECT DISTINCT session FROM wants"):
            if _is_gone(other):
                self.leave(other)

    def take(self, session: str, worker: str) -> Lease | None:
        """Lease the next queued job the session waits for, or ``None`` if there is none now."""
        sql = """SELECT jobs.key, cell FROM wants JOIN jobs USING (key)
                 WHERE session = ? AND state = 'queued' ORDER BY position LIMIT 1"""
        self.expire()
        if not self._database.query(sql, (session,)):
            return None
        with self._database.transaction() as connection:
            row = connection.execute(sql, (session,)).fetchone()
            if row is None:
                return None
            ((start,),) = connection.execute(
                """UPDATE jobs SET state = 'leased', worker = ?, expires = ?, starts = starts + 1
                   WHERE key = ? RETURNING starts""",
                (worker, time.time() + self._lease_seconds, row[0]),
            ).fetchall()
            return Lease(Cell.from_json(row[1]), worker, start)

    def renew(self, lease: Lease) -> bool:
        """Prolong a lease; ``False`` if it was taken away."""
        with self._database.transaction() as connection:
            cursor = connection.execute(
                f"UPDATE jobs SET expires = ? WHERE {_HELD}", (time.time() + self._lease_seconds, *_held_by(lease))
            )
            return cursor.rowcount == 1

    def finish(self, lease: Lease, record: Record) -> bool:
        """Publish a record and mark the job done, unless the lease was taken away (then ``False``, nothing written).

        Raises:
            StoreError: the record cannot be written; nothing stands under its final name.
        """
        temporary, content = self._store.stage(record)
        try:
            with self._database.transaction() as connection:
                done = connection.execute(
                    f"UPDATE jobs SET state = 'done', worker = NULL, error = NULL WHERE {_HELD}", _held_by(lease)
                )
                if done.rowcount == 0:
                    return False
                self._store.promote(connection, record, temporary, content)
                return True
        finally:
            temporary.unlink(missing_ok=True)

    def finish_with_stored(self, lease: Lease) -> None:
        """Mark the job done because its record is already there."""
        self._close(lease, "done", None)

    def fail(self, lease: Lease, error: str) -> None:
        """The cell raised: keep the text. A cell is deterministic, so it is not tried again in this run."""
        self._close(lease, "failed", error)

    def give_back(self, lease: Lease) -> None:
        """Queue the job again, as if it had not been taken."""
        self._close(lease, "queued", None)

    def _close(self, lease: Lease, state: str, error: str | None) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                f"UPDATE jobs SET state = ?, error = ?, worker = NULL WHERE {_HELD}", (state, error, *_held_by(lease))
            )

    def release(self, worker: str) -> None:
        """A worker has ended: its job returns to the queue with one attempt more, or fails after too many."""
        self._lose("worker = ?", worker)

    def expire(self) -> None:
        """The same for every job whose lease ran out."""
        now = time.time()
        if self._database.query("SELECT 1 FROM jobs WHERE state = 'leased' AND expires < ? LIMIT 1", (now,)):
            self._lose("expires < ?", now)

    def _lose(self, condition: str, value: str | float) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                f"""UPDATE jobs SET attempts = attempts + 1, worker = NULL,
                    state = CASE WHEN attempts + 1 > {MAX_ATTEMPTS} THEN 'failed' ELSE 'queued' END,
                    error = CASE WHEN attempts + 1 > {MAX_ATTEMPTS} THEN '{WORKER_LOST}' END
                    WHERE state = 'leased' AND {condition}""",
                (value,),
            )

    def collect(self, session: str) -> list[tuple[str, str | None]]:
        """Key and error (``None``: done) of jobs that ended since the last call; the session waits for them no more."""
        sql = """SELECT position, jobs.key, CASE WHEN state = 'failed' THEN error END FROM wants JOIN jobs USING (key)
                 WHERE session = ? AND state IN ('done', 'failed') ORDER BY position"""
        if not self._database.query(f"{sql} LIMIT 1", (session,)):
            return []
        with self._database.transaction() as connection:
            rows = connection.execute(sql, (session,)).fetchall()
            connection.executemany(
                "DELETE FROM wants WHERE session = ? AND position = ?", [(session, row[0]) for row in rows]
            )
        return [(key, error) for _, key, error in rows]

    def open_jobs(self, session: str) -> int:
        """How many of the session's jobs are queued or leased."""
        sql = "SELECT count(*) FROM wants JOIN jobs USING (key) WHERE session = ? AND state IN ('queued', 'leased')"
        return int(self._database.query(sql, (session,))[0][0])

    def leave(self, session: str) -> None:
        """The session ends: what is still queued and wanted by nobody else is cancelled."""
        with self._database.transaction() as connection:
            connection.execute(
                """UPDATE jobs SET state = 'cancelled' WHERE state = 'queued'
                   AND key IN (SELECT key FROM wants WHERE session = ?1)
                   AND key NOT IN (SELECT key FROM wants WHERE session <> ?1)""",
                (session,),
            )
            connection.execute("DELETE FROM wants WHERE session = ?", (session,))

    def states(self) -> dict[str, int]:
        """Number of jobs in each state."""
        return dict(self._database.query("SELECT state, count(*) FROM jobs GROUP BY state"))

    def starts(self) -> dict[str, int]:
        """How often each job was started."""
        return dict(self._database.query("SELECT key, starts FROM jobs"))


_HELD = "key = ? AND state = 'leased' AND worker = ? AND starts = ?"


def _held_by(lease: Lease) -> tuple[str, str, int]:
    return lease.cell.key, lease.worker, lease.start


def process_name(pid: int) -> str:
    """A name for a process of this machine that no other will have, and from which ``_is_gone`` can tell its end."""
    return f"{_machine()}|{pid}|{uuid.uuid4().hex[:8]}"


def _machine() -> str:
    """The machine and its process-number space: containers that share a folder may share a host name."""
    try:
        space = str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        space = ""
    return f"{platform.node()}|{space}"


def _is_gone(name: str) -> bool:
    """Whether the process was one of this machine and has ended; of other machines nothing is known."""
    where, pid, _ = name.rsplit("|", 2)
    if where != _machine() or os.name == "nt":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
