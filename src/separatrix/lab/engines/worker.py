"""One worker process: takes jobs from the table of a store, computes their cells, publishes the records.

Started by an engine as ``python -m separatrix.lab.engines.worker``, its settings one line of JSON on standard input.
That pipe stays open: the line ``stop`` asks the worker to finish its cell and leave; the end of the pipe means that the
engine has ended, and the worker gives its job back and leaves at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import TypedDict, final

from separatrix.core.errors import StoreError

from ..experiment.scratch import remove_scratch
from ..store.records import Store
from .computation import compute_record, explain_failure
from .jobs import JobTable, Lease

READY = "ready"
STOP = "stop"
STORE_FAILED = 3
"""Exit code when the store cannot be written; the sentence stands on standard output."""

IDLE_SECONDS = 0.1


class WorkerSettings(TypedDict):
    """What an engine tells a worker."""

    store: str
    session: str
    worker: str
    lease_seconds: float
    data: dict[str, str]


@final
class Worker:
    """Takes jobs of one session until none is open, or until it is asked to stop."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._store = Store(settings["store"])
        self._jobs = JobTable(self._store, settings["lease_seconds"])
        self._stopping = threading.Event()
        self._lease: Lease | None = None

    def work(self) -> None:
        """Compute jobs until none is left or a stop is asked for."""
        threading.Thread(target=self._renew, daemon=True).start()
        while not self._stopping.is_set():
            self._lease = self._jobs.take(self._settings["session"], self._settings["worker"])
            if self._lease is not None:
                self._compute(self._lease)
            elif self._jobs.open_jobs(self._settings["session"]) == 0:
                return
            else:  # another run holds what is left; it may yet lose it
                self._stopping.wait(IDLE_SECONDS)

    def _compute(self, lease: Lease) -> None:
        if self._store.read(lease.cell.key) is not None:  # its first worker was killed just after publishing
            self._jobs.finish_with_stored(lease)
            remove_scratch(self._store.scratch, lease.cell)
            return
        try:
            record = compute_record(lease.cell, self._settings["data"], self._store.scratch)
        except (Exception, SystemExit) as error:
            remove_scratch(self._store.scratch, lease.cell)  # it would only fail again where it failed
            self._jobs.fail(lease, explain_failure(error))
            return
        try:
            self._jobs.finish(lease, record)
        except StoreError:
            self.give_back()
            raise
        remove_scratch(self._store.scratch, lease.cell)

    def _renew(self) -> None:
        period = self._settings["lease_seconds"] / 6
        while True:
            time.sleep(period)
            with contextlib.suppress(StoreError):  # the next round tries again, long before the lease runs out
                if self._lease is not None:
                    self._jobs.renew(self._lease)

    def listen(self, control: Iterable[str]) -> None:
        """Wait for the line that asks to stop, or for the end of the engine."""
        for line in control:
            if line.strip() == STOP:
                self._stopping.set()
        self.give_back()
        os._exit(0)

    def give_back(self) -> None:
        """Return the present job to the queue, if the store can still be written; else its lease runs out."""
        with contextlib.suppress(StoreError):
            if self._lease is not None:
                self._jobs.give_back(self._lease)


def main() -> int:
    """Read settings, work, and leave with an exit code."""
    to_engine = sys.stdout
    sys.stdout = sys.stderr  # what a cell prints must not be taken for a message
    settings: WorkerSettings = json.loads(sys.stdin.readline())
    try:
        worker = Worker(settings)
        print(READY, file=to_engine, flush=True)
        threading.Thread(target=worker.listen, args=(sys.stdin,), daemon=True).start()
        worker.work()
    except StoreError as error:
        print(error, file=to_engine, flush=True)
        return STORE_FAILED
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a thread still waits for standard input; there is nothing left to clean up
