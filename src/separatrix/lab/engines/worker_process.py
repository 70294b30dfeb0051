"""One worker process as its engine sees it: how it is started, asked to stop and ended, and what it leaves behind.

The process has its own session and owns its descriptors: standard input is empty, and whatever a cell or its children
print goes to a log of the worker. Nothing a cell does to them can block the engine, which talks to the worker through
a pipe that its children do not inherit and hears of it through the job table, its exit code and its log.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import final

from separatrix.core.errors import StoreError

from ..store.records import Store
from .computation import ONE_THREAD
from .process_names import held_memory, is_gone, process_name
from .worker import STOP, WorkerSettings

LOG_TAIL = 4000
"""Characters at the end of a log that go into the error of a cell."""
LOG_LIMIT = 64 << 20
"""Bytes after which a log is cut: a cell may print for ever, the disk may not fill."""
TRACE_SECONDS = 1.0
"""How long a worker that is to be ended has to write down where it is."""


@final
class WorkerProcess:
    """A worker process, its control pipe and its log."""

    def __init__(self, store: Store, settings: WorkerSettings) -> None:
        self.log = store.logs / f"worker-{os.getpid()}-{uuid.uuid4().hex[:8]}.log"
        try:
            store.logs.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                self._process = self._started(log.fileno())
        except OSError as error:
            raise StoreError(f"no worker can be started: {error.strerror or error} ({self.log}).") from error
        self.pid = self._process.pid
        self.name = process_name(self.pid)
        self._send(json.dumps({**settings, "worker": self.name, "log": str(self.log)}))

    def _started(self, log: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "separatrix.lab.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,  # an interrupt typed at the terminal is the engine's to handle
        )

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended already, which exit_code() will tell
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def ask_to_stop(self) -> None:
        """Let it finish its cell and leave."""
        self._send(STOP)

    def exit_code(self) -> int | None:
        """Its exit code (negative: the signal that ended it) once it has ended; then nothing is left of it."""
        if hasattr(os, "waitid"):
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, self.pid, options) is None:
                    return None
                self._end_children()  # while its number is still its own
        code = self._process.poll()
        if code is not None:
            self._close()
        return code

    def held_memory(self) -> int:
        """Bytes it holds now."""
        return held_memory(self.pid)

    def cut_log(self) -> None:
        """Shorten a log that grew beyond all use."""
        with contextlib.suppress(OSError):
            if self.log.stat().st_size > LOG_LIMIT:
                os.truncate(self.log, 0)

    def last_words(self) -> str:
        """The end of its log."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL))
            return file.read().decode(errors="replace").strip()
        return ""

    def trace(self) -> str:
        """Where it is, as written by itself into its log; empty if it does not answer."""
        before = self.last_words()
        if not hasattr(signal, "SIGUSR1"):
            return before
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)
        deadline = time.monotonic() + TRACE_SECONDS
        while (now := self.last_words()) == before and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.02)  # the rest of what it writes
        return self.last_words() or now

    def kill(self) -> None:
        """End it and its children at once."""
        self._end_children()
        self._process.kill()
        self._process.wait()
        self._close()

    def _end_children(self) -> None:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def keep_log(self, kept: Path) -> None:
        """Leave the log under the name of the cell that failed."""
        with contextlib.suppress(OSError):
            os.replace(self.log, kept)

    def drop_log(self) -> None:
        """Remove the log of a worker that did nothing wrong."""
        with contextlib.suppress(OSError):
            self.log.unlink(missing_ok=True)


def ended_by(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = f" ({signal.Signals(-code).name})"
    except ValueError:
        name = ""
    return f"its process was ended by signal {-code}{name}"


def drop_logs_of_the_dead(store: Store) -> None:
    """Remove logs of workers whose engine was killed; logs of failed cells stay."""
    for log in store.logs.glob("worker-*-*.log"):
        pid = log.name.split("-")[1]
        if pid.isdecimal() and is_gone(process_name(int(pid))):
            log.unlink(missing_ok=True)
