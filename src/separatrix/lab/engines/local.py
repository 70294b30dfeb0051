"""The engine of one machine: worker processes over the job table of the store.

One worker is a process too (``jobs=1``), so that every record is computed under the same conditions: a fresh process,
one thread. Killing a worker costs one start; killing this process ends the workers, and another run goes on.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

from separatrix.core.names import suggest_options
from separatrix.core.scalars import require_integer, require_positive

from ..experiment.cell import Cell
from ..experiment.limits import Limits, usual_limits
from ..store.records import Store
from .base import AbstractEngine, Finished, RunInterrupted
from .computation import counted_interrupts, require_importable
from .jobs import LEASE_SECONDS, JobTable
from .process_names import process_name
from .worker import tidy_after
from .worker_pool import WorkerPool

POLL_SECONDS = 0.05
STOP_SECONDS = 1.5
"""How long workers have after an interrupt: short cells end, trainings save where they are, the rest is given back."""


@final
@suggest_options
class LocalEngine(AbstractEngine):
    """Worker processes on this machine.

    Args:
        jobs: number of workers; the number of physical cores if not given.
        lease_seconds: how long a worker keeps its cell without a sign of life; signs come six times as often.
        limits: of every cell, whatever its experiment says.
        usual: limits of cells whose experiment names none; if not given, those of the largest scale.

    An interrupt (Ctrl-C, SIGTERM, SIGHUP, all alike) gives the workers a moment (``STOP_SECONDS``): cells that end in
    it are kept, trainings save their state and go on from it the next time, the others are given back. A second one
    ends them at once; both raise ``RunInterrupted``.
    """

    def __init__(
        self,
        jobs: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
        limits: Limits | None = None,
        usual: Limits | None = None,
    ) -> None:
        self.jobs = physical_cores() if jobs is None else require_integer(jobs, "jobs", at_least=1)
        self._lease_seconds = require_positive(lease_seconds, "lease_seconds")
        self._limits = limits or Limits()
        self._usual = usual or usual_limits("paper")
        self._workers: WorkerPool | None = None

    @property
    def worker_pids(self) -> list[int]:
        """Process numbers of the present workers."""
        return self._workers.pids if self._workers is not None else []

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        """See ``AbstractEngine.run``."""
        table = JobTable(store, self._lease_seconds)
        session = process_name(os.getpid())
        for cell in cells:
            require_importable(cell)
        with counted_interrupts() as interrupts:
            table.enqueue(session, cells)
            workers = self._workers = WorkerPool(
                store, table, session, self.jobs, self._lease_seconds, self._limits, self._usual, data
            )
            try:
                yield from _collect(store, table, session, workers, len(cells), interrupts)
            finally:
                workers.end()
                table.leave(session)
                self._workers = None


def _collect(
    store: Store, table: JobTable, session: str, workers: WorkerPool, n_cells: int, interrupts: list[int]
) -> Iterator[Finished]:
    """Report cells as they end, keep the workers at their number, and stop when interrupted."""
    n_done, asked = 0, math.inf

    def ended() -> Iterator[Finished]:
        """Cells that have ended since the last look."""
        nonlocal n_done
        for key, error in table.collect(session):
            n_done += 1
            if error is None:
                tidy_after(store, key)  # its worker does so too, unless it ends, or is ended, before it comes to that
            yield Finished(key, error)

    while n_done < n_cells:
        workers.refill()
        before = n_done
        yield from ended()
        if interrupts and asked == math.inf:
            workers.ask_to_stop()
            asked = time.monotonic()
        is_over = len(interrupts) > 1 or not workers.pids or time.monotonic() - asked > STOP_SECONDS
        if interrupts and n_done == before and is_over:
            workers.end()
            yield from ended()  # published while we looked elsewhere: from now on nobody is left to do so
            if n_done < n_cells:
                raise RunInterrupted(n_done, n_cells, interrupts[0])
        elif n_done < n_cells:  # also when there were some: workers wait for the index while we look into it
            time.sleep(POLL_SECONDS)


def physical_cores() -> int:
    """Cores this process may use, counting two hardware threads of one core once where the system tells (Linux)."""
    if hasattr(os, "sched_getaffinity"):
        allowed = os.sched_getaffinity(0)
        cores = {_siblings(processor) for processor in allowed}
        return max(1, len(cores))
    return os.cpu_count() or 1


def _siblings(processor: int) -> str:
    topology = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return topology.read_text().strip()
    except OSError:
        return str(processor)
