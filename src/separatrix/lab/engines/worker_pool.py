"""Worker processes, kept at their number: when one ends, its job is freed and another is started."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import final

from separatrix.core.errors import StoreError

from ..store.records import Store
from .base import EngineError
from .computation import ONE_THREAD
from .jobs import JobTable, process_name
from .worker import READY, STOP, STORE_FAILED, WorkerSettings

MAX_FALSE_STARTS = 3
MAX_KILLED_STARTS = 20
"""More are allowed when the process was killed from outside before it was ready: the next may not be."""


@final
class _Process:
    """One worker process and its three pipes."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "separatrix.lab.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,  # an interrupt typed at the terminal is the engine's to handle
        )
        self.pid = self._process.pid
        self.name = settings["worker"] = process_name(self.pid)
        self._last_lines: collections.deque[str] = collections.deque(maxlen=20)
        self._reader = threading.Thread(target=self._drain, args=(self._process.stderr,), daemon=True)
        self._reader.start()
        self._send(json.dumps(settings))

    def _drain(self, errors: Iterable[str]) -> None:
        self._last_lines.extend(errors)

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which poll() will tell
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def ask_to_stop(self) -> None:
        self._send(STOP)

    def exit_code(self) -> int | None:
        return self._process.poll()

    def remaining_output(self) -> tuple[list[str], str]:
        """After its end: the lines it wrote to the engine, and the last line of its standard error."""
        assert self._process.stdout is not None
        written = self._process.stdout.read().splitlines()
        self._close()
        errors = [line.strip() for line in self._last_lines if line.strip()]
        return written, errors[-1] if errors else "no message"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._reader.join(timeout=1)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


@final
class WorkerPool:
    """Worker processes for one session of a job table."""

    def __init__(
        self, store: Store, jobs: JobTable, session: str, size: int, lease_seconds: float, data: Mapping[str, str]
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._session = session
        self._size = size
        self._lease_seconds = lease_seconds
        self._data = dict(data)
        self._running: list[_Process] = []
        self._stopping = False
        self._false_starts = 0

    @property
    def pids(self) -> list[int]:
        """Process numbers of the workers that have not been seen to end."""
        return [process.pid for process in self._running]

    def refill(self) -> None:
        """Note which workers have ended, and start as many as there is work for.

        Raises:
            StoreError: a worker could not write the store.
            EngineError: workers end as soon as they start.
        """
        for process in list(self._running):
            code = process.exit_code()
            if code is not None:
                self._running.remove(process)
                self._note_exit(process, code)
        if not self._stopping:
            wanted = min(self._size, self._jobs.open_jobs(self._session))
            while len(self._running) < wanted:
                self._running.append(_Process(self._settings()))

    def _note_exit(self, process: _Process, code: int) -> None:
        written, message = process.remaining_output()
        self._jobs.release(process.name)
        if code == STORE_FAILED:
            raise StoreError(written[-1] if written else message)
        if READY in written:
            self._false_starts = 0
            return
        self._false_starts += 1
        if self._false_starts > (MAX_KILLED_STARTS if code < 0 else MAX_FALSE_STARTS):
            raise EngineError(f"worker processes end as soon as they start (exit code {code}): {message}")

    def _settings(self) -> WorkerSettings:
        return {
            "store": str(self._store.folder),
            "session": self._session,
            "worker": "",
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
            self._jobs.release(process.name)
        self._running.clear()
