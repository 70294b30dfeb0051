"""Which arithmetic runs an inner loop: torch, or kernels compiled by numba where that is installed.

Both give the same numbers up to rounding. Training may carry a difference of rounding far, so a run that has to
repeat bit for bit names its backend; the cells of the lab do.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib
import importlib.util
import os
from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

from ..errors import MissingExtra
from ..names import choose

Backend: TypeAlias = Literal["auto", "torch", "numba"]
_chosen: contextvars.ContextVar[Backend] = contextvars.ContextVar("backend", default="auto")


@functools.lru_cache(maxsize=1)
def has_numba() -> bool:
    """Whether numba is installed, and its compiler not switched off; does not import it."""
    return importlib.util.find_spec("numba") is not None and not _switched_off()


def _switched_off() -> bool:
    """As people do to debug or to measure coverage; our kernels have no meaning as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def current_backend() -> Backend:
    """The backend that holds here."""
    return _chosen.get()


@contextlib.contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Choose the arithmetic of inner loops within a block.

    Args:
        name: ``"torch"``; ``"numba"`` (compiled wherever a compiled loop exists, however short the job); or ``"auto"``,
            the default: numba if it is installed and its code lies in the cache, or once the loops that have run here
            outlast the compilation.

    Gradients are computed with the backend that their forward pass had.

    Raises:
        MissingExtra: numba is wanted and not installed, switched off, or cannot be imported.

    Example:
        >>> with use_backend("torch"):
        ...     current_backend()
        'torch'
    """
    choose("name", name, get_args(Backend))
    if name == "numba":
        _require_numba()
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def _require_numba() -> None:
    if importlib.util.find_spec("numba") is None:
        raise MissingExtra("the backend 'numba' needs numba: install separatrix[fast].")
    if _switched_off():
        raise MissingExtra("the backend 'numba' needs numba's compiler, which NUMBA_DISABLE_JIT switches off.")
    try:
        importlib.import_module("numba")
    except ImportError as error:  # another version of NumPy, for instance
        raise MissingExtra(f"the backend 'numba' needs numba, which cannot be imported: {error}") from error
