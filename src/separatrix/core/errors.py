"""Errors raised on purpose, and the sentences they carry.

Each class also inherits from the built-in a Python user would expect, so ``except ValueError`` keeps working.
A message names the argument, the rule, what came, and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class SeparatrixError(Exception):
    """Everything this package raises on purpose."""


class InvalidInput(SeparatrixError, ValueError):
    """An argument has the wrong shape, range, type or name. The sentence is one line, whatever value it shows."""

    def __init__(self, message: object = "") -> None:
        super().__init__(" ".join(str(message).split("\n")) if "\n" in str(message) else message)


class ShapeError(InvalidInput):
    """An array has the wrong shape."""


class UnknownOption(InvalidInput, TypeError):
    """A constructor was given a keyword it does not have."""


class OutsideTheory(InvalidInput):
    """The closed form that was asked for does not hold for these arguments."""


class NotConverged(SeparatrixError, RuntimeError):
    """A solver was asked to raise when it fails; the whole solution is in ``solution``."""

    def __init__(self, message: str, solution: Any = None) -> None:
        super().__init__(message)
        self.solution = solution


class MissingData(SeparatrixError, FileNotFoundError):
    """A data set or file is not where it should be."""


class DatasetUnavailable(MissingData):
    """A data set was found nowhere and may not or cannot be downloaded."""


class CorruptData(SeparatrixError, ValueError):
    """A file's content does not have the digest or layout it must have."""


class MissingExtra(SeparatrixError, ImportError):
    """An optional dependency is not installed."""


class StoreError(SeparatrixError, OSError):
    """A store of records cannot be opened, read or written."""


class ConvergenceWarning(UserWarning):
    """Something did not converge and the caller asked not to raise."""


class DivergenceWarning(UserWarning):
    """A training has left the finite numbers."""


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names that ``name`` may have been meant to be, best first; none if none is near. Capitals do not count.

    Example:
        >>> nearest_names("GOE", ["gaussian", "goe"])
        ['goe']
    """
    if count < 1:
        raise InvalidInput(f"count must be an integer of at least 1; got {count}.")
    by_small: dict[str, str] = {}
    for option in known:
        by_small.setdefault(option.lower(), option)
    return [by_small[small] for small in difflib.get_close_matches(name.lower(), by_small, n=count, cutoff=0.6)]


LONGEST_NAME = 100
"""Characters of a name that an error shows whole."""


def unknown_name(
    kind: str, name: object, known: Iterable[str], *, error: type[InvalidInput] | None = None
) -> InvalidInput:
    """The error for a name nobody knows, with up to three that are near.

    Example:
        >>> print(unknown_name("ensemble", "orthgonal", ["gaussian", "orthogonal"]))
        unknown ensemble 'orthgonal'. Did you mean 'orthogonal'? Known: gaussian, orthogonal.
    """
    known = sorted(known)
    near = nearest_names(name, known) if isinstance(name, str) else []
    hint = f" Did you mean {_either(near)}?" if near else ""
    listing = f" Known: {', '.join(known)}." if 0 < len(known) <= 12 else ""
    shown = repr(name) if "\n" not in repr(name) else type(name).__name__
    if isinstance(name, str) and len(name) > LONGEST_NAME:
        shown = f"{name[: LONGEST_NAME // 2]!r}... ({len(name)} characters)"
    return (error or InvalidInput)(f"unknown {kind} {shown}.{hint}{listing}")


def _either(names: list[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
