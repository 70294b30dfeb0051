"""A stranger's engine, and the engine of one machine without its worker processes, where these are not the point."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import pytest

from separatrix.lab.engines.base import AbstractEngine, Finished, RunInterrupted
from separatrix.lab.engines.computation import compute_record, counted_interrupts, explain_failure
from separatrix.lab.engines.jobs import JobTable
from separatrix.lab.engines.local import LocalEngine
from separatrix.lab.experiment.cell import Cell
from separatrix.lab.store.records import Store


class BackwardsEngine(AbstractEngine):
    """This process alone, last cell first."""

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        jobs, session = JobTable(store), f"backwards|{os.getpid()}|0"
        jobs.enqueue(session, cells[::-1])
        n_done = 0
        with counted_interrupts() as interrupts:
            try:
                while (lease := jobs.take(session, session)) is not None:
                    if interrupts:
                        jobs.give_back(lease)
                        raise RunInterrupted(n_done, len(cells))
                    try:
                        jobs.finish(lease, compute_record(lease.cell, data, store.scratch))
                    except ValueError as error:
                        jobs.fail(lease, explain_failure(error))
                    for key, error_text in jobs.collect(session):
                        n_done += 1
                        yield Finished(key, error_text)
            finally:
                jobs.leave(session)


def compute_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the engine of one machine compute in this process. A worker costs the start of a Python and its imports;
    records are the same, as the contract of engines says."""
    monkeypatch.setattr(LocalEngine, "run", lambda self, *args: BackwardsEngine().run(*args))
