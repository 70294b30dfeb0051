"""What every engine does with a cell: compute its record, explain a failure, notice that a person wants to stop."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from separatrix.core.arithmetic.backend import use_backend
from separatrix.core.devices import offered_device
from separatrix.core.errors import InvalidInput
from separatrix.core.result import brief

from ..experiment.cell import Cell
from ..experiment.definition import load
from ..experiment.provenance import provenance
from ..experiment.record import Record
from ..experiment.scratch import scratch_below
from .process_names import PeakMemory
from .worker_devices import device_words, worker_device

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""The environment of a process that computes cells. The order of a sum depends on the number of threads, so it is
always one; only a process that starts with these variables is sure to keep to it."""


def compute_record(cell: Cell, data: Mapping[str, str], scratch: Path | None = None) -> Record:
    """Run one cell and wrap its payload with its provenance; one thread, whatever the machine.

    A cell that trains does so on the GPU of this process, if it has one (``worker_devices``); the record says where.

    Args:
        cell: what to compute.
        data: SHA-256 of data sets by name, for the provenance.
        scratch: below it the cell may keep a checkpoint (``scratch_folder``).

    Raises:
        Exception: whatever the experiment raises, or that its payload cannot be written. It is the cell's own error.
    """
    experiment = load(cell.entry)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    peak = PeakMemory()
    begun, busy = time.perf_counter(), time.process_time()
    with scratch_below(scratch), use_backend("torch"), offered_device(worker_device) as offer:
        payload = experiment.run(cell)  # with torch, bit for bit, whatever else this machine has installed
    seconds, busy = time.perf_counter() - begun, time.process_time() - busy
    if not isinstance(payload, Mapping):
        raise InvalidInput(f"run of experiment {cell.experiment!r} must return a dictionary; got {brief(payload)}.")
    origin = provenance(experiment, cell, seconds, data)
    noted = {"processor_seconds": busy, "device": device_words(offer.used), "memory": peak.bytes(), "warm": _is_warm()}
    record = Record(cell, payload, {**origin, **noted})
    record.to_text()  # a payload that cannot be written is an error of the cell, not of the store
    return record


_computed_before: list[bool] = []


def _is_warm() -> bool:
    """Whether this process has computed a cell before: the first one's time holds that of imports."""
    _computed_before.append(True)
    del _computed_before[2:]
    return len(_computed_before) > 1


def require_importable(cell: Cell) -> None:
    """Refuse a cell whose experiment no other process can import."""
    if cell.entry.startswith("__main__:"):
        raise InvalidInput(
            f"experiment {cell.experiment!r} is defined in the main program, where worker processes cannot find it; "
            "put it into a module of its own and import it."
        )


def explain_failure(error: BaseException) -> str:
    """The error in one line, then how it came about."""
    trace = "".join(traceback.format_exception(error)).rstrip()
    reason = " ".join(str(error).split())
    return f"{type(error).__name__}: {reason}\n{trace}"


@contextlib.contextmanager
def counted_interrupts() -> Iterator[list[int]]:
    """Count interrupts instead of raising ``KeyboardInterrupt`` or ending in the middle of a transaction.

    An interrupt is Ctrl-C, SIGTERM (a system or batch queue that wants to stop) or SIGHUP (a terminal that was closed).

    Yields:
        The numbers of the signals that have come so far, in order: an empty list until the first.
    """
    seen: list[int] = []

    def count(number: int, frame: FrameType | None) -> None:
        seen.append(number)

    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield seen
        return
    kinds = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {kind: signal.signal(kind, count) for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN}
    try:
        yield seen
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
