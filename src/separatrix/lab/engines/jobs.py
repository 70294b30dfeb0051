"""The job table: which cell is queued, leased, done, failed or cancelled, and who works on it.

Every run on a store uses the same table, so two runs at once share the work: a cell leased by one is waited for by the
other. Which jobs a run waits for is kept per session (one call of an engine). A job is at least once started and at
most once published: a record gets its final name inside the transaction that checks the lease. Whether a lease is still
alive, each observer judges for itself (``leases``): no clock is compared with another.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import final

from separatrix.core.described import Described
from separatrix.core.names import suggest_options

from ..experiment.cell import Cell
from ..experiment.record import Record
from ..store.records import Store
from .leases import LeaseWatch
from .process_names import is_gone

LEASE_SECONDS = 30.0
MAX_ATTEMPTS = 3
WORKER_LOST = "worker lost"
LAST = 1_000_000_000
"""Added to the position of a job whose worker was lost: the others come first, and the next kill meets another."""


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
class JobTable(Described):
    """The jobs of a store.

    Args:
        store: where the records go.
        lease_seconds: how long a lease lasts without a sign of life.
        clock: seconds that only ever grow.
    """

    def __init__(
        self, store: Store, lease_seconds: float = LEASE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._database = store.database
        self._watch = LeaseWatch(lease_seconds, clock)

    def enqueue(self, session: str, cells: Sequence[Cell]) -> None:
        """Queue the cells that have no record, and note that the session waits for all of them.

        Failed and cancelled jobs are tried again; jobs of workers of this machine that have ended are freed.
        """
        with self._database.transaction() as connection:
            connection.executemany(
                """INSERT INTO jobs (key, cell, state) VALUES (?1, ?2, 'queued') ON CONFLICT (key) DO UPDATE
                   SET state = 'queued', cell = ?2, worker = NULL, attempts = 0, error = NULL
                   WHERE state IN ('queued', 'failed', 'cancelled')
                   OR state = 'done' AND key NOT IN (SELECT key FROM records)""",
                [(cell.key, cell.to_json()) for cell in cells],
            )
            connection.executemany(
                """INSERT INTO wants (session, position, key, ended)
                   SELECT ?1, ?2, key, state = 'done' FROM jobs WHERE key = ?3""",
                [(session, position, cell.key) for position, cell in enumerate(cells)],
            )
        for (worker,) in self._database.query("SELECT DISTINCT worker FROM jobs WHERE state = 'leased'"):
            if is_gone(worker):
                self._free(worker)
        for (other,) in self._database.query("SELECT DISTINCT session FROM wants"):
            if is_gone(other):
                self.leave(other)

    def _free(self, worker: str) -> None:
        """Queue again what a worker held that ended with its run; a new run counts attempts from the beginning."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'queued', worker = NULL, attempts = 0 WHERE state = 'leased' AND worker = ?",
                (worker,),
            )

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
                "UPDATE jobs SET state = 'leased', worker = ?, starts = starts + 1 WHERE key = ? RETURNING starts",
                (worker, row[0]),
            ).fetchall()
            return Lease(Cell.from_json(row[1]), worker, start)

    def renew(self, worker: str) -> None:
        """A sign of life of every lease that a worker holds."""
        with self._database.transaction() as connection:
            connection.execute("UPDATE jobs SET beat = beat + 1 WHERE state = 'leased' AND worker = ?", (worker,))

    def holds(self, lease: Lease) -> bool:
        """Whether a lease stands; ``False`` if it was taken away."""
        return bool(self._database.query(f"SELECT 1 FROM jobs WHERE {_HELD}", _held_by(lease)))

    def held(self, worker: str) -> list[Lease]:
        """The leases of a worker."""
        rows = self._database.query(
            "SELECT cell, worker, starts FROM jobs WHERE state = 'leased' AND worker = ?", (worker,)
        )
        return [Lease(Cell.from_json(cell), holder, start) for cell, holder, start in rows]

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
                connection.execute(_ENDED, (lease.cell.key,))
                self._store.promote(connection, record, temporary, content)
        finally:
            temporary.unlink(missing_ok=True)
        self._store.keep(record)
        return True

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
            closed = connection.execute(
                f"UPDATE jobs SET state = ?, error = ?, worker = NULL WHERE {_HELD}", (state, error, *_held_by(lease))
            )
            if closed.rowcount and state in ("done", "failed"):
                connection.execute(_ENDED, (lease.cell.key,))

    def release(self, worker: str, reason: str, details: str = "") -> None:
        """A worker has ended: its jobs return to the end of the queue with one attempt more, or fail after too many.

        Args:
            worker: its name.
            reason: why it ended, in a few words.
            details: what it said last, for the error of a job that fails.
        """
        error = f"{WORKER_LOST}: {reason}, in each of {MAX_ATTEMPTS + 1} starts" + (f"\n{details}" if details else "")
        with self._database.transaction() as connection:
            lost = connection.execute(
                f"""UPDATE jobs SET attempts = attempts + 1, worker = NULL,
                    state = CASE WHEN attempts + 1 > {MAX_ATTEMPTS} THEN 'failed' ELSE 'queued' END,
                    error = CASE WHEN attempts + 1 > {MAX_ATTEMPTS} THEN ? END
                    WHERE state = 'leased' AND worker = ? RETURNING key, state""",
                (error, worker),
            ).fetchall()
            connection.executemany(_ENDED, [(key,) for key, state in lost if state == "failed"])
            connection.executemany(
                f"UPDATE wants SET position = position + {LAST} WHERE key = ?", [(key,) for key, _ in lost]
            )

    def expire(self) -> None:
        """The same for every worker that is gone or has given no sign of life for the length of a lease."""
        if not self._watch.is_due():
            return
        rows = self._database.query("SELECT key, worker, starts, beat FROM jobs WHERE state = 'leased'")
        for worker, reason in self._watch.lapsed(rows).items():
            self.release(worker, reason)

    def collect(self, session: str) -> list[tuple[str, str | None]]:
        """Key and error (``None``: done) of jobs that ended since the last call; the session waits for them no more."""
        sql = "SELECT position, key FROM wants WHERE session = ? AND ended ORDER BY position"
        if not self._database.query(f"{sql} LIMIT 1", (session,)):
            return []
        with self._database.transaction() as connection:
            rows = connection.execute(
                f"""SELECT position, jobs.key, state, error FROM ({sql}) JOIN jobs USING (key) ORDER BY position""",
                (session,),
            ).fetchall()
            connection.executemany(
                "DELETE FROM wants WHERE session = ? AND position = ?", [(session, row[0]) for row in rows]
            )
        return [(key, (error or WORKER_LOST) if state == "failed" else None) for _, key, state, error in rows]

    def open_jobs(self, session: str) -> int:
        """How many of the session's jobs are queued or leased."""
        sql = "SELECT count(*) FROM wants JOIN jobs USING (key) WHERE session = ? AND state IN ('queued', 'leased')"
        return int(self._database.query(sql, (session,))[0][0])

    def has_open_jobs(self, session: str) -> bool:
        """Whether one of the session's jobs is queued or leased."""
        sql = "SELECT 1 FROM wants JOIN jobs USING (key) WHERE session = ? AND state IN ('queued', 'leased') LIMIT 1"
        return bool(self._database.query(sql, (session,)))

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


_ENDED = "UPDATE wants SET ended = 1 WHERE key = ?"
_HELD = "key = ? AND state = 'leased' AND worker = ? AND starts = ?"


def _held_by(lease: Lease) -> tuple[str, str, int]:
    return lease.cell.key, lease.worker, lease.start
