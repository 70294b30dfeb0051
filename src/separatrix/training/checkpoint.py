"""Checkpoints: all that decides the rest of a run, in one file that is there whole or not at all.

Reading one executes nothing (``torch.load(weights_only=True)``). A run continued from a checkpoint gives the same
numbers, bit for bit, as one that was never stopped, on the same build and number of threads.
"""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from separatrix.core.errors import CorruptData, InvalidInput, MissingData

FORMAT = 2


def save_checkpoint(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write tensors and plain values so that a kill at any moment leaves the old file or the new one.

    The content goes to a file beside the target, onto the disk, and only then takes the target's name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as stream:
        torch.save({"format": FORMAT, **content}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint.

    Raises:
        MissingData: there is no such file.
        CorruptData: the file is not a whole checkpoint of this package.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingData(f"there is no checkpoint at {path}.")
    try:
        if not zipfile.is_zipfile(path):  # its directory stands at the end: a truncated file has none
            raise EOFError("its end is missing")
        content = torch.load(path, weights_only=True)
        version = content["format"]
    except (pickle.UnpicklingError, EOFError, RuntimeError, LookupError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorruptData(f"{path} is not a whole checkpoint ({reason}). Move it away to start anew.") from None
    if version != FORMAT:
        raise CorruptData(f"{path} has checkpoint format {version}; this version reads {FORMAT}.")
    return dict(content)


def require_equal_settings(saved: Mapping[str, Any], wanted: Mapping[str, Any], path: str | Path) -> None:
    """Refuse to continue a run under other settings than it began with, naming the first that differs.

    How often to save decides no number, so that may change.
    """
    for name in sorted({*saved, *wanted} - {"save_every", "save_seconds"}):
        if saved.get(name) != wanted.get(name):
            raise InvalidInput(
                f"{name} must be {saved.get(name)!r}, as in the checkpoint {path}, to continue that run; got "
                f"{wanted.get(name)!r}. Give another path to start anew."
            )


def stream_states(streams: Mapping[str, torch.Generator]) -> dict[str, torch.Tensor]:
    """The states of generators by name."""
    return {name: generator.get_state() for name, generator in streams.items()}


def restore_streams(streams: Mapping[str, torch.Generator], states: Mapping[str, torch.Tensor]) -> None:
    """Put generators back; the names must be those of the checkpoint."""
    if set(streams) != set(states):
        raise InvalidInput(f"streams must be named {sorted(states)}, as in the checkpoint; got {sorted(streams)}.")
    for name, generator in streams.items():
        generator.set_state(states[name])
