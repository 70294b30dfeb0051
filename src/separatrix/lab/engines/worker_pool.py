"""Worker processes, kept at their number: when one ends, its job is freed and another is started.

The pool sees its workers: it gives the sign of life for those that are at work, and stops a cell that is over its
limits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import final

from separatrix.core.errors import StoreError

from ..experiment.definition import load
from ..experiment.limits import Limits
from ..store.database import no_space
from ..store.records import Store
from .base import EngineError
from .jobs import JobTable, Lease
from .leases import LOOKS
from .process_names import is_working
from .worker import MARK_READY, STORE_FAILED, WorkerSettings
from .worker_process import WorkerProcess, drop_logs_of_the_dead, ended_by

MAX_FALSE_STARTS = 3
MAX_KILLED_STARTS = 20
"""More are allowed when the process was killed from outside before it was ready: the next may not be."""
WATCH_SECONDS = 0.2
"""Time between two looks at what the workers do."""


@final
class WorkerPool:
    """Worker processes for one session of a job table.

    Args:
        store: where the records go.
        jobs: its job table.
        session: whose jobs are worked on.
        size: number of workers.
        lease_seconds: how long a worker keeps its cell without a sign of life.
        limits: of every cell, whatever its experiment says.
        usual: limits where neither ``limits`` nor the experiment names one.
        data: SHA-256 of data sets by name, for the provenance.
    """

    def __init__(
        self,
        store: Store,
        jobs: JobTable,
        session: str,
        size: int,
        lease_seconds: float,
        limits: Limits,
        usual: Limits,
        data: Mapping[str, str],
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._session = session
        self._size = size
        self._lease_seconds = lease_seconds
        self._limits, self._usual = limits, usual
        self._data = dict(data)
        self._running: list[WorkerProcess] = []
        self._stopping = False
        self._false_starts = 0
        self._watched = self._beaten = time.monotonic()
        self._since: dict[tuple[str, int], float] = {}
        drop_logs_of_the_dead(store)

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers that have not been seen to end."""
        return [process.pid for process in self._running]

    def refill(self) -> None:
        """Note which workers have ended, watch the others, and start as many as there is work for.

        Raises:
            StoreError: a worker could not write the store.
            EngineError: workers end as soon as they start.
        """
        for process in list(self._running):
            code = process.exit_code()
            if code is not None:
                self._running.remove(process)
                self._note_exit(process, code)
        self._watch()
        if not self._stopping and len(self._running) < self._size:
            wanted = min(self._size, self._jobs.open_jobs(self._session))
            while len(self._running) < wanted:
                self._running.append(WorkerProcess(self._store, self._settings()))

    def _watch(self) -> None:
        now = time.monotonic()
        if now - self._watched < WATCH_SECONDS:
            return
        passed, self._watched = (
            min(now - self._watched, 5 * WATCH_SECONDS),
            now,
        )  # time we slept ourselves is not theirs
        beats = now - self._beaten > self._lease_seconds / LOOKS
        since: dict[tuple[str, int], float] = {}
        for process in list(self._running):
            process.cut_log()
            if beats and is_working(process.name):
                self._jobs.renew(process.name)
            for lease in self._jobs.held(process.name):
                held = since[lease.cell.key, lease.start] = self._since.get((lease.cell.key, lease.start), 0.0) + passed
                self._enforce(process, lease, held)
        self._since = since
        if beats:
            self._beaten = now

    def _enforce(self, process: WorkerProcess, lease: Lease, seconds: float) -> None:
        """Stop a cell that is over its limits and set it aside, with the traceback of where it was."""
        limits = self._limits.or_else(load(lease.cell.entry).limits).or_else(self._usual)
        if limits.seconds is not None and seconds > limits.seconds:
            reason = f"time limit: stopped because it ran longer than {limits.seconds:g} s"
        elif limits.memory is not None and process.held_memory() > limits.memory:
            reason = f"memory limit: stopped because it held more than {limits.memory / 1e9:.3g} GB"
        else:
            return
        trace = process.trace()
        process.kill()
        self._running.remove(process)
        self._jobs.fail(lease, f"{reason}\n{trace}")
        process.keep_log(self._store.log_of(lease.cell.key))

    def _note_exit(self, process: WorkerProcess, code: int) -> None:
        words, held = process.last_words(), self._jobs.held(process.name)
        self._jobs.release(process.name, ended_by(code), words)
        if held:
            process.keep_log(self._store.log_of(held[0].cell.key))
        process.drop_log()
        if code == STORE_FAILED:
            said = words.splitlines()[-1] if words else MARK_READY
            raise no_space(self._store.folder) if said.startswith(MARK_READY) else StoreError(said)
        if held or code == 0 or MARK_READY in words:
            self._false_starts = 0
            return
        self._false_starts += 1
        if self._false_starts > (MAX_KILLED_STARTS if code < 0 else MAX_FALSE_STARTS):
            message = words.splitlines()[-1] if words else "no message"
            raise EngineError(f"worker processes end as soon as they start (exit code {code}): {message}")

    def _settings(self) -> WorkerSettings:
        return {
            "store": str(self._store.folder),
            "session": self._session,
            "worker": "",
            "log": "",
            "bound": threading.current_thread() is threading.main_thread(),
            "lease_seconds": self._lease_seconds,
            "data": self._data,
        }

    def ask_to_stop(self) -> None:
        """Let every worker finish its cell, and start no other."""
        self._stopping = True
        for process in self._running:
            process.ask_to_stop()

    def end(self) -> None:
        """End every worker at once and free its job."""
        for process in self._running:
            process.kill()
            for lease in self._jobs.held(process.name):
                self._jobs.give_back(lease)
            process.drop_log()
        self._running.clear()
