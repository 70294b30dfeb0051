"""Dask clusters for tests: one that all tests of a session share, and schedulers and workers that can be killed."""

from __future__ import annotations

import atexit
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from command_line import environment
from separatrix.lab.engines.computation import ONE_THREAD

HERE = ("--dashboard-address", "127.0.0.1:0")
"""Without a dashboard Dask still serves its pages, and to every machine."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A scheduler and workers as processes of their own, as somebody's cluster has them."""

    def __init__(self, n_workers: int, folder: Path | None = None, tls: Path | None = None) -> None:
        self.port, self._folder, self._tls = free_port(), folder, tls
        self.address = f"{'tls' if tls else 'tcp'}://127.0.0.1:{self.port}"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), *HERE)
        self.workers = [self.start_worker() for _ in range(n_workers)]

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Without a nanny: killing the process kills the worker."""
        words = ("worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", *HERE)
        return self._start(*words, "--local-directory", str(self._folder or "/tmp"))

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        output = (self._folder / "dask.log").open("ab") if self._folder else subprocess.DEVNULL
        secured = [
            word
            for option in ("ca-file", "cert", "key")
            for word in (f"--tls-{option}", str(self._tls / {"ca-file": "cert.pem"}.get(option, f"{option}.pem")))
        ] if self._tls else []  # fmt: skip
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_" + words[0],
                *words[1:],
                *secured,
                "--preload",
                "dask_preload",
            ],
            env=environment(**ONE_THREAD, TESTS_PID=str(os.getpid())),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def kill_scheduler(self) -> None:
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()

    def restart_scheduler(self) -> None:
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port), *HERE)

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@functools.cache
def shared_cluster() -> str:
    """The address of a cluster of two workers that lasts until the tests end."""
    cluster = Cluster(2)
    atexit.register(cluster.close)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", cluster.port)) == 0:
                break
        time.sleep(0.05)
    return cluster.address
