"""Compiled functions whose code is kept on disk, where there is a place for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def kept(*files: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit(cache=True, ...)`` that watches further files; without a cache where nothing can be written.

    Code on disk is out of date once the file of its function has changed. numba does not look at the files of the
    functions that it calls, which are compiled into it: they are named here. An installation that may only be read, of
    a user without a home, has no place for a cache, and numba refuses the function itself then. Imports numba.

    Args:
        files: with functions that are called.
        options: of ``numba.njit``.
    """
    import numba

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            compiled = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # "no locator available"
            return numba.njit(**options)(function)
        stored = compiled._cache._cache_file
        stored._source_stamp = (stored._source_stamp, *map(digest, files))
        return compiled

    return decorate


def digest(path: str) -> str:
    """Of the content of a file: copying an installation, or touching it, changes nothing."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def has_code(function: Any, arguments: Iterable[Any]) -> bool:
    """Whether a kept function is compiled for such arguments, here or in the cache on disk. Imports numba."""
    import numba

    kinds = tuple(numba.typeof(argument) for argument in arguments)
    return kinds in function.overloads or function._cache.load_overload(kinds, function.targetctx) is not None
