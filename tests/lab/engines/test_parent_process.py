"""Nothing of a run outlives it, however it was ended: not even a worker whose cell keeps the interpreter to itself."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from command_line import command, environment

N_LOOKS = 2400
"""So often a test looks before it takes something for a fault; a look every 50 ms, two minutes in all: on a busy
machine a start of Python takes many seconds."""


def wait_until_gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that are left after the last look."""
    for _ in range(N_LOOKS):
        left = [process for process in processes if is_alive(process)]
        if not left:
            return []
        time.sleep(0.05)
    return left


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def family(client: subprocess.Popen[str], is_ready: Path) -> Iterator[list[psutil.Process]]:
    """The processes below a client when a file has come to be; what is left of them at the end is ended."""
    below: list[psutil.Process] = []
    try:
        for _ in range(N_LOOKS):
            if is_ready.exists() or client.poll() is not None:
                break
            time.sleep(0.05)
        assert is_ready.exists()
        below = psutil.Process(client.pid).children(recursive=True)
        yield below
    finally:
        client.kill()
        client.wait()
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        ("local", "gil"),
        ("dask", "sleep"),
        pytest.param("local", "sleep", marks=pytest.mark.slow),
        pytest.param("dask", "gil", marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_leaves_no_process(tmp_path: Path, engine: str, kind: str) -> None:
    marks = tmp_path / "marks"
    changes = ("--set", f'kinds=["{kind}"]', "--set", "amount=900.0", "--set", f"marks={marks}")
    words = ("run", "trouble_experiments:trouble", *changes, "--engine", engine, "--jobs", "1", "-q")
    client = subprocess.Popen(
        command(*words, "--store", str(tmp_path / "store")), env=environment(), stderr=subprocess.DEVNULL, text=True
    )
    with family(client, marks) as below:
        assert below
        client.kill()
        client.wait()
        assert wait_until_gone(below) == []


def test_a_killed_test_leaves_no_cluster(tmp_path: Path) -> None:
    code = (
        "import pathlib, time; from dask_clusters import Cluster; cluster = Cluster(1); "
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch(); time.sleep(900)"
    )
    client = subprocess.Popen([sys.executable, "-c", code], env=environment(), stderr=subprocess.DEVNULL, text=True)
    with family(client, tmp_path / "ready") as below:
        assert len(below) == 2
        client.kill()
        client.wait()
        assert wait_until_gone(below) == []
