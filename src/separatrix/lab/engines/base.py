"""What runs cells. An engine may use processes or machines; the records are the same, bit for bit."""

from __future__ import annotations

import abc
import dataclasses
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import final

from separatrix.core.described import Described
from separatrix.core.errors import SeparatrixError
from separatrix.core.names import suggest_options

from ..experiment.cell import Cell
from ..store.records import Store


class EngineError(SeparatrixError, RuntimeError):
    """Cells cannot be computed here: worker processes do not start."""


class RunInterrupted(SeparatrixError):
    """A person, or the system, stopped the run; finished cells are in the store.

    Args:
        n_done: cells that this run has finished.
        n_cells: cells that it was given.
        signal_number: what stopped it, for the exit code; 0 if it was told to stop then.
    """

    def __init__(self, n_done: int, n_cells: int, signal_number: int = signal.SIGINT) -> None:
        super().__init__(f"stopped after {n_done} of {n_cells} cells; finished cells are kept.")
        self.n_done = n_done
        self.n_cells = n_cells
        self.exit_code = 128 + signal_number if signal_number else 0
        """What a program that was stopped so leaves with, by custom: 130 for Ctrl-C; 0 if it was told to stop then."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Finished:
    """One cell has ended: its record is in the store, or ``error`` says why not."""

    key: str
    error: str | None = None


class AbstractEngine(Described, abc.ABC):
    """Runs cells and publishes their records.

    A subclass writes ``run``. It must compute each cell with one thread (``compute_record`` does, in a process that was
    started with one), publish through the job table of the store (``JobTable``), and yield every cell exactly once, in
    whatever order they end; a cell that raises is reported with ``explain_failure``, and the others go on. On an
    interrupt (``counted_interrupts``) it raises ``RunInterrupted``, and what was finished stays in the store.

    The order of work: ``enqueue`` the cells for a session (any unique text); ``take`` a lease for a worker (its name),
    compute, ``finish`` or ``fail``; ``collect`` what has ended, by whomever, and yield it; ``leave`` at the end,
    however that comes. ``take`` gives nothing while others hold what is left: then ``expire`` frees what the dead hold.
    See ``docs/how-to/bring-your-own-part``. Checked by ``tests/lab/engines/test_engine_contract.py``, where yours is
    one line.
    """

    @abc.abstractmethod
    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        """Compute the cells that have no record yet.

        Args:
            cells: what to compute, without repetition.
            store: where records go.
            data: SHA-256 of data sets by name, for the provenance.

        Raises:
            RunInterrupted: a person stopped the run.
            StoreError: a record cannot be written.
            EngineError: no worker can be started.
        """
