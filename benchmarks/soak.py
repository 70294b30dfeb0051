"""A soak: thousands of cells of all kinds under random kills, full disks and a clock that jumps; nothing may be lost,
nothing may be there twice, nothing may grow.

    python benchmarks/soak.py [--cells 5000] [--json FILE]

Workers are killed at random, the run is stopped and begun again, the clock of the system seems to jump by up to a year
either way (where a C compiler is found; the clock itself is left alone), and, as root, where a small disk can be
mounted, the disk is filled at times. At the end every cell that can be computed has its record, every one that cannot
is told why, and memory and open files of the process that drove it all are those of its beginning.
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
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from soak_experiment import SOAK, kind_of  # noqa: E402

from separatrix.core.errors import StoreError  # noqa: E402
from separatrix.lab import JobTable, Limits, LocalEngine, RunInterrupted, Store, check_store  # noqa: E402

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
        self.counts = {"workers killed": 0, "runs stopped": 0, "disks filled": 0, "clock jumps": 0}
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
            if deed < 0.6 and pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._chooser.choice(pids), signal.SIGKILL)
                    self.counts["workers killed"] += 1
            elif deed < 0.72 and CLOCK in os.environ:
                jump(self._chooser.uniform(-3e7, 3e7))
                self.counts["clock jumps"] += 1
            elif deed < 0.84 and pids:
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


CLOCK = "SOAK_CLOCK"
JUMPING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static long ahead(void) {
  static volatile long *seconds;
  if (!seconds) {
    int file = open(getenv("SOAK_CLOCK"), O_RDONLY);
    void *page = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    static volatile long none;
    seconds = page == MAP_FAILED ? &none : (volatile long *)page;
  }
  return *seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int answer = real(clock, now);
  if (clock == CLOCK_REALTIME && !answer) now->tv_sec += ahead();
  return answer;
}
time_t time(time_t *place) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (place) *place = now.tv_sec;
  return now.tv_sec;
}
"""
"""The clock of the system for this program and all it starts, with as many seconds added as a file says."""


def with_jumping_clock() -> None:
    """Start this program anew under a clock that can be made to jump; go on with the real one without a compiler."""
    if CLOCK in os.environ or not shutil.which("cc"):
        return
    folder = Path(tempfile.mkdtemp(prefix="soak-clock-"))
    (folder / "clock.c").write_text(JUMPING)
    (folder / "seconds").write_bytes(bytes(8))
    library = folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, folder / "clock.c", "-ldl"], check=True)
    environment = {**os.environ, CLOCK: str(folder / "seconds"), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def jump(seconds: float) -> None:
    """Set the clock so many seconds off the true time."""
    with open(os.environ[CLOCK], "r+b") as file:
        file.write(int(seconds).to_bytes(8, "little", signed=True))
    assert abs(time.time() - Path(os.environ[CLOCK]).stat().st_mtime - seconds) < 60, "the clock did not jump"


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
    ended, told = dict[str, str | None](), Counter[str]()
    restarts, begun, marks = 0, time.monotonic(), list[dict[str, int]]()
    with disk("96m") as (folder, small), Store(folder / "store") as store, Trouble(folder, seed, small) as trouble:
        while len(ended) < n_cells:
            engine = trouble.engine = LocalEngine(2, limits=Limits(seconds=6, memory=1.2e9))
            try:
                for finished in engine.run([cell for cell in cells if cell.key not in ended], store, {}):
                    ended[finished.key] = finished.error
                    told[finished.key] += 1
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
        starts = sum(JobTable(store).starts().values())
    return {
        "cells": n_cells,
        "seconds": round(time.monotonic() - begun),
        "small disk": small,
        **trouble.counts,
        "restarts": restarts,
        "records": records,
        "records wanted": sum(kind_of(number) not in BAD for number in range(n_cells)),
        "whole": found.n_whole,
        "lost": len(lost),
        "told of twice": sum(count > 1 for count in told.values()),
        "starts": starts,
        "healthy cells that failed": wrong,
        "logs left": left,
        "footprints": marks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with_jumping_clock()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])
    text = json.dumps(soak(arguments.cells, arguments.seed), indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
