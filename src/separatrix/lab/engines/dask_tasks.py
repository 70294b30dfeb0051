"""What the Dask engine does on a worker: compute the record of one cell and hand it to the client as text.

Records are text on the way too, verified by their digest where they arrive; nothing from a store is unpickled.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import functools
import getpass
import os
import signal
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..experiment.cell import Cell
from ..experiment.definition import load
from ..experiment.scratch import remove_scratch
from .computation import compute_record
from .parent_process import end_with_parent

LOG_VARIABLE = "SEPARATRIX_WORKER_LOG"
GRACE_SECONDS = 5.0
LARGE = 1 << 20
"""A record longer than this is left in the folder of the store, where the client shares it, instead of being sent."""


def compute_text(cell: str, seconds: float | None, data: Mapping[str, str], folder: str, mark: str) -> str:
    """The record of a cell as text, or ``@`` and the file in which it stands.

    Args:
        cell: the cell as JSON.
        seconds: how long it may run.
        data: SHA-256 of data sets by name, for the provenance.
        folder: of the client's store.
        mark: name of a file that the client has put there: who sees it shares the folder.
    """
    _keep_to_one_thread()
    found, store = Cell.from_json(cell), Path(folder)
    shared = (store / mark).is_file()
    scratch = store / "scratch" if shared else _own_scratch()
    load(found.entry)  # importing is not the cell's time
    with _time_limit(seconds):
        text = compute_record(found, data, scratch).to_text()
    remove_scratch(scratch, found.key)
    if not shared or len(text) < LARGE:
        return text
    place = store / f"{mark}-{found.key}-{uuid.uuid4().hex[:8]}"
    place.write_text(text, encoding="utf-8")
    return f"@{place.name}"


class TimeLimit(Exception):
    """A cell ran longer than it may."""


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Raise ``TimeLimit`` inside when the time is over; a cell that does not hear it loses its process soon after."""
    if seconds is None or seconds >= threading.TIMEOUT_MAX:
        yield
        return
    stop = threading.Timer(seconds, _raise_in, (threading.get_ident(),))
    stop.daemon = True
    stop.start()
    faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=2)  # needs no interpreter to act
    try:
        yield
    except TimeLimit:
        raise TimeLimit(f"stopped because it ran longer than {seconds:g} s") from None
    finally:
        stop.cancel()
        faulthandler.cancel_dump_traceback_later()


def _raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeLimit))


def _own_scratch() -> Path:
    """Where a worker that does not share the folder keeps checkpoints; another worker of its machine finds them."""
    return Path(tempfile.gettempdir()) / f"separatrix-{getpass.getuser()}" / "scratch"


@functools.cache
def _keep_to_one_thread() -> None:
    """The order of a sum depends on the number of threads; a worker of somebody's cluster may have been given more."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(limits=1)


def dask_setup(worker: Any) -> None:
    """Of a worker of our own cluster, when it starts: output goes to a log, interrupts are the client's to handle.

    It ends with the client, whose thread for this worker lives as long as the worker (``distributed.process``).
    """
    end_with_parent()
    log = os.environ.get(LOG_VARIABLE)
    if log:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number in (1, 2):
            os.dup2(handle, number)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
