"""One worker process: takes jobs from the table of a store, computes their cells, publishes the records.

Started by an engine as ``python -m separatrix.lab.engines.worker``, its settings one line of JSON on standard input.
That pipe stays open, but under another number, which children do not inherit; cells find standard input empty, and what
they print goes to the log of the worker, which begins anew with every cell. The line ``stop`` (or SIGTERM, SIGHUP,
SIGINT) asks the worker to finish its cell and leave, or to save its training after the step and give it back; the end
of the pipe means that the engine has ended, and the worker gives its job back and leaves at once.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO, TypedDict, final

from separatrix.core.errors import StoreError
from separatrix.core.stopping import WorkStopped, stoppable

from ..experiment.scratch import remove_scratch
from ..store.database import no_space
from ..store.records import Store
from .computation import compute_record, explain_failure
from .jobs import JobTable, Lease
from .parent_process import end_with_parent

MARK_READY = "worker ready"
"""First line of the log of a worker that came so far."""
STOP = "stop"
STORE_FAILED = 3
"""Exit code when the store cannot be written; the sentence is the last line of the log."""

FULL = (errno.ENOSPC, errno.EDQUOT)
IDLE_SECONDS = 0.1
LOG_KEPT = 1 << 20
"""Bytes of the log of a failed cell that are kept."""


class WorkerSettings(TypedDict):
    """What an engine tells a worker."""

    store: str
    session: str
    worker: str
    log: str
    bound: bool
    """Whether the thread that started it lives as long as its engine does."""
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
                self._lease = None
            elif not self._jobs.has_open_jobs(self._settings["session"]):
                return
            else:  # another run holds what is left; it may yet lose it
                self._stopping.wait(IDLE_SECONDS)

    def _compute(self, lease: Lease) -> None:
        cell, scratch = lease.cell, self._store.scratch
        if self._store.read(cell.key) is not None:  # its first worker was killed just after publishing
            self._jobs.finish_with_stored(lease)
            tidy_after(self._store, cell.key)
            return
        _begin_log(lease)
        try:
            with stoppable(self._stopping.is_set):
                record = compute_record(cell, self._settings["data"], scratch)
        except WorkStopped:  # its checkpoint stays; whoever takes it next goes on from there
            self.ask_to_stop()
            self.give_back()
            return
        except (Exception, SystemExit) as error:
            self._note_failure(lease, error)
            return
        try:
            published = self._jobs.finish(lease, record)
        except StoreError:
            self.give_back()
            raise
        if published:
            tidy_after(self._store, cell.key)

    def _note_failure(self, lease: Lease, error: BaseException) -> None:
        if isinstance(error, OSError) and error.errno in FULL:
            self.give_back()  # the cell may be in order; the disk is not
            raise no_space(self._store.folder) from error
        remove_scratch(self._store.scratch, lease.cell.key)  # it would only fail again where it failed
        with contextlib.suppress(OSError):
            _keep_log(Path(self._settings["log"]), self._store.log_of(lease.cell.key))
        self._jobs.fail(lease, explain_failure(error))

    def ask_to_stop(self) -> None:
        """Finish the present cell, or save its training, and leave."""
        self._stopping.set()

    def _renew(self) -> None:
        period = self._settings["lease_seconds"] / 6
        while True:
            time.sleep(period)
            with contextlib.suppress(StoreError):  # the next round tries again, long before the lease runs out
                if self._lease is not None:
                    self._jobs.renew(self._lease.worker)

    def listen(self, control: Iterable[str]) -> None:
        """Wait for the line that asks to stop, or for the end of the engine."""
        for line in control:
            if line.strip() == STOP:
                self.ask_to_stop()
        self.give_back()
        os._exit(0)

    def give_back(self) -> None:
        """Return the present job to the queue, if the store can still be written; else its lease runs out."""
        with contextlib.suppress(StoreError):
            if self._lease is not None:
                self._jobs.give_back(self._lease)


def tidy_after(store: Store, key: str) -> None:
    """Remove what a cell needed only until its record was published: its checkpoint and the log of an earlier start."""
    remove_scratch(store.scratch, key)
    with contextlib.suppress(OSError):
        store.log_of(key).unlink(missing_ok=True)


def _begin_log(lease: Lease) -> None:
    """Empty the log, so that it is that of one cell."""
    with contextlib.suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.ftruncate(1, 0)
        os.write(1, f"{MARK_READY}: {lease.cell.experiment}, cell {lease.cell.key}, start {lease.start}\n".encode())


def _keep_log(log: Path, kept: Path) -> None:
    """Copy what the cell printed, if it did, for people who look for its error."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_KEPT))
        content = file.read()
    if content.count(b"\n") > 1:
        kept.write_bytes(content)


def _own_descriptors() -> TextIO:
    """The pipe from the engine, out of reach of cells and their children; standard input becomes empty."""
    control = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    faulthandler.enable(all_threads=False)  # a crash leaves its place in the log
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=False)
    return control


def main() -> int:
    """Read settings, work, and leave with an exit code."""
    control = _own_descriptors()
    settings: WorkerSettings = json.loads(control.readline())
    if settings["bound"]:
        end_with_parent()
    try:
        worker = Worker(settings)
        print(MARK_READY)
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):  # the last from batch queues, which tell every process of a job
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda number, frame: worker.ask_to_stop())
        threading.Thread(target=worker.listen, args=(control,), daemon=True).start()
        worker.work()
    except StoreError as error:
        with contextlib.suppress(OSError):
            print(error, flush=True)
        return STORE_FAILED
    except OSError as error:
        if error.errno not in FULL:
            raise
        return STORE_FAILED  # not even the log has room; the engine knows the sentence
    return 0


if __name__ == "__main__":
    code = main()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)  # a thread still waits for the engine; there is nothing left to clean up
