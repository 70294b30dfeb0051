"""A folder in which a cell that takes long may keep a checkpoint, so that a killed run goes on where it was.

The folder belongs to the cell's key and is removed once its record is published. What a cell computes must not depend
on whether it found something there: a checkpoint of ``training`` keeps that promise.
"""

from __future__ import annotations

import contextlib
import contextvars
import shutil
from collections.abc import Iterator
from pathlib import Path

from .cell import Cell

_ROOT: contextvars.ContextVar[Path | None] = contextvars.ContextVar("scratch", default=None)


def scratch_folder(cell: Cell) -> Path | None:
    """The cell's own folder, made if need be; ``None`` where the cell is run by hand, outside a store."""
    root = _ROOT.get()
    if root is None:
        return None
    folder = root / cell.key
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def scratch_below(root: Path | None) -> Iterator[None]:
    """Inside, cells have their folders below ``root``."""
    token = _ROOT.set(root)
    try:
        yield
    finally:
        _ROOT.reset(token)


def remove_scratch(root: Path, key: str) -> None:
    """Remove the folder of a cell that has its record, or whose computation failed by itself."""
    shutil.rmtree(root / key, ignore_errors=True)
