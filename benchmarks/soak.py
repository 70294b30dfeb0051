"""A soak: thousands of cells of all kinds under random kills and full disks; nothing may be lost, nothing may grow.

    python benchmarks/soak.py [--cells 5000] [--json FILE]

Workers are killed at random, the run is stopped and begun again, and (as root, where a small disk can be mounted) the
disk is filled at times. At the end every cell that can be computed has its record, every one that cannot is told why,
and memory and open files of the process that drove it all are those of its beginning.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from soak_experiment import SOAK, kind_of  # noqa: E402

from separatrix.core.errors import StoreError  # noqa: E402
from separatrix.lab import Limits, LocalEngine, RunInterrupted, Store, check_store  # noqa: E402

BAD = ("fail", "crash", "hang", "leak")


def footprint() -> dict[str, int]:
    return {
        "resident kB": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024,
        "open files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


class Trouble:
    """Kills workers, stops the run and fills the disk, until it is told to end."""

    def __init__(self, folder: Path, seed: int, small_disk: bool) -> None:
        self.counts = {"workers killed": 0, "runs stopped": 0, "disks filled": 0}
        self._chooser, self._folder, self._small = random.Random(seed), folder, small_disk
        self._over = threading.Event()
        self.engine: LocalEngine | None = None
        self._thread = threading.Thread(target=self._make)

    def __enter__(self) -> Trouble:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()

    def _make(self) -> None:
        while not self._over.wait(self._chooser.uniform(2, 6)):
            deed = self._chooser.random()
            pids = self.engine.worker_pids if self.engine is not None else []
            if deed < 0.75 and pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._chooser.choice(pids), signal.SIGKILL)
                    self.counts["workers killed"] += 1
            elif deed < 0.88 and pids:
                os.kill(os.getpid(), signal.SIGTERM)
                self.counts["runs stopped"] += 1
            elif self._small:
                self._fill()

    def _fill(self) -> None:
        ballast = self._folder / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        self.counts["disks filled"] += 1
        self._over.wait(3)
        ballast.unlink()


@contextlib.contextmanager
def disk(size: str) -> Any:
    """A folder on a disk of its own, if one can be mounted; and whether it is."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    try:
        yield folder, mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


def soak(n_cells: int, seed: int) -> dict[str, Any]:
    cells = SOAK.cells(SOAK.params("smoke", n_cells=n_cells))
    ended: dict[str, str | None] = {}
    restarts, begun, marks = 0, time.monotonic(), list[dict[str, int]]()
    with disk("96m") as (folder, small), Store(folder / "store") as store, Trouble(folder, seed, small) as trouble:
        while len(ended) < n_cells:
            engine = trouble.engine = LocalEngine(2, limits=Limits(seconds=6, memory=1.2e9))
            try:
                for finished in engine.run([cell for cell in cells if cell.key not in ended], store, {}):
                    ended[finished.key] = finished.error
                    if len(ended) % (n_cells // 10) == 0:
                        marks.append(footprint())
            except (RunInterrupted, StoreError) as stopped:
                restarts += 1
                print(f"{time.monotonic() - begun:.0f} s: {len(ended)} ended; {stopped}", file=sys.stderr, flush=True)
                time.sleep(1)
        trouble.engine = None
        found = check_store(store)
        kinds = {cell.key: cell.args["kind"] for cell in cells}
        lost = [key for key, error in ended.items() if error is None and not store.path(key).exists()]
        wrong = sorted(
            {(kinds[key], (error or "")[:60]) for key, error in ended.items() if kinds[key] not in BAD and error}
        )
        records = sum(1 for _ in store.folder.glob("records/*/*.json"))
        left = [path.name for path in store.folder.glob("logs/worker-*")]
    return {
        "cells": n_cells,
        "seconds": round(time.monotonic() - begun),
        "small disk": small,
        **trouble.counts,
        "restarts": restarts,
        "records": records,
        "records wanted": sum(kind_of(number) not in BAD for number in range(n_cells)),
        "whole": found.n_whole,
        "lost": lost,
        "healthy cells that failed": wrong,
        "logs left": left,
        "footprints": [marks[0], marks[-1]],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
    text = json.dumps(soak(arguments.cells, arguments.seed), indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
