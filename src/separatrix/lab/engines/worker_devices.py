"""The one rule that gives a worker its device: a GPU that no other worker of this machine has, else the processor.

A worker takes a GPU when its first cell trains, by a lock that ends with its process, and keeps it. The locks are those
of the machine, so workers of several runs and of a Dask cluster see each other's. Two variables change the rule:
``SEPARATRIX_DEVICE`` is ``auto``, ``cpu`` (never a GPU) or ``cuda`` (a cell that trains fails where none is free), and
``SEPARATRIX_CELLS_PER_GPU`` lets so many workers share one.
"""

from __future__ import annotations

import functools
import getpass
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose

from .base import EngineError

DEVICE_VARIABLE = "SEPARATRIX_DEVICE"
SHARE_VARIABLE = "SEPARATRIX_CELLS_PER_GPU"


def chosen_device(told: str, gpus: Sequence[str], share: int, take: Callable[[str], bool]) -> str:
    """The device of a worker.

    Args:
        told: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        gpus: the GPUs of this machine, by names that no other GPU has.
        share: how many workers may have one GPU.
        take: makes a place on a GPU this worker's own, by its name; ``False`` if it is somebody else's.

    Raises:
        InvalidInput: ``told`` is something else, or ``share`` is not positive.
        EngineError: a GPU is wanted and none is free.
    """
    choose(DEVICE_VARIABLE, told, ("auto", "cpu", "cuda"))
    if share < 1:
        raise InvalidInput(f"{SHARE_VARIABLE} must be an integer of at least 1; got {share}.")
    if told == "cpu":
        return "cpu"
    for place in range(share):  # every GPU gets its first worker before one gets its second
        for index, name in enumerate(gpus):
            if take(f"{name}.{place}"):
                return f"cuda:{index}"
    if told == "cuda":
        raise EngineError(f"{DEVICE_VARIABLE}=cuda, and none of the {len(gpus)} GPUs of this machine is free.")
    return "cpu"


@functools.cache
def worker_device() -> str:
    """The device of this process for cells that train, found out once."""
    share = os.environ.get(SHARE_VARIABLE, "1")
    if not share.isdecimal():
        raise InvalidInput(f"{SHARE_VARIABLE} must be an integer of at least 1; got {share!r}.")
    told = os.environ.get(DEVICE_VARIABLE, "auto")
    return chosen_device(told, _gpus() if told != "cpu" else (), int(share), _take)


def device_words(device: str) -> str:
    """A device as a record names it: what it is, not which of several it was."""
    if not device.startswith("cuda"):
        return device
    import torch

    return f"cuda ({torch.cuda.get_device_name(device)})"


def _gpus() -> Sequence[str]:
    """The GPUs that this process may see, by names that stay the same whatever the process may see."""
    import torch

    if not torch.cuda.is_available():
        return ()
    found = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return tuple(str(getattr(gpu, "uuid", index)) for index, gpu in enumerate(found))


_held: list[int] = []
"""Handles of the locks; the system gives them back when the process ends, however it ends."""


def _take(place: str) -> bool:
    try:
        import fcntl
    except ImportError:  # without such locks a worker cannot know of the others
        return False
    folder = Path(tempfile.gettempdir()) / f"separatrix-{getpass.getuser()}" / "gpus"
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / f"{place}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return False
    _held.append(handle)
    return True
