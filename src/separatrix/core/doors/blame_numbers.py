"""Arguments whose numbers are to blame for a failed call: too many, none, of a type or a size that cannot be used; and
paths that no system takes."""

from __future__ import annotations

import errno
import math
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidInput

_OF_MEMORY = ("allocate memory", "not enough memory", "unable to allocate", "storage size calculation overflowed",
              "overflow when unpacking")  # fmt: skip
_OF_TYPES = ("dtype", "not implemented for", "scalar type", "datatype")
_OF_SIZES = ("result out of range", "singular", "failed to converge", "non-finite", "infinity to integer", "too large")
_OF_NOTHING = ("negative dimension", "with size 0", "non-zero size", "division by zero", "by zero", "negative power")
_PLAIN = (torch.float32, torch.float64)
FAR = 1e100
"""Numbers beyond it, or closer to 0 than its inverse, leave the range of floating numbers once they are multiplied."""


def too_much(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """The largest count among the arguments, where memory ran out."""
    said = str(error).lower()
    if not (isinstance(error, MemoryError) or any(words in said for words in _OF_MEMORY)):
        return None
    asked = re.search(r"allocate (\d+) bytes", said)
    size = f" {int(asked[1]) / 1e9:.3g} GB are needed," if asked else ""
    counts = {name: abs(value) for name, value in given.items() if isinstance(value, int)}
    sizes = {name: value.numel() for name, value in given.items() if isinstance(value, Tensor)}
    name = max(counts or sizes, key=(counts or sizes).__getitem__, default=None)
    if name is None:
        return InvalidInput(f"the call must ask for less:{size} more than there is of memory.")
    shown = str(given[name]) if counts else f"shape {tuple(given[name].shape)}"
    return InvalidInput(f"{name} must be smaller:{size} more than there is of memory; got {shown}.")


def too_few(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """A count of zero or less, where there was nothing to compute with."""
    if not any(words in str(error).lower() for words in _OF_NOTHING):
        return None
    for name, value in given.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            return InvalidInput(f"{name} must be at least 1; got {value}.")
    return None


def no_path(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """A name that is too long for the system, or that it cannot write."""
    too_long = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
    unwritable = isinstance(error, UnicodeEncodeError) or "null byte" in str(error) or "null character" in str(error)
    for name, value in given.items():
        if (too_long or unwritable) and isinstance(value, str | Path):
            reason = "too long" if too_long else "not one that the system can write"
            return InvalidInput(f"{name} must be the path of a file; {str(value)[:60]!a} is {reason}.")
    return None


def unsuited(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """A tensor of a type for which torch has no routine, or which does not fit the others."""
    if not any(words in str(error).lower() for words in _OF_TYPES):
        return None
    for name, value in given.items():
        if isinstance(value, Tensor) and value.dtype not in _PLAIN:
            return InvalidInput(f"{name} must be in float32 or float64; got {value.dtype}.")
    kinds = {name: value.dtype for name, value in given.items() if isinstance(value, Tensor)}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} {dtype}" for name, dtype in kinds.items())
        return InvalidInput(f"{' and '.join(kinds)} must be of one type; got {listed}.")
    return None


def out_of_range(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """An argument with numbers so large or small that computing with them leaves the range of floating numbers."""
    numerical = isinstance(error, OverflowError | ZeroDivisionError | torch.linalg.LinAlgError)
    if not (numerical or any(words in str(error).lower() for words in _OF_SIZES)):
        return None
    for name, value in given.items():
        size = _size(value)
        if size is not None and not 1 / FAR <= size <= FAR:
            word = "large" if size > 1 else "small"
            return InvalidInput(f"{name} must be of a size that can be computed with; got {size:.3g}, too {word}.")
    return None


def _size(value: Any) -> float | None:
    """The largest absolute value of a number or tensor; ``None`` if it is zero or no such thing."""
    if isinstance(value, Tensor) and value.dtype != torch.bool and value.numel():
        found = float(value.detach().abs().max())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found = abs(float(value)) if abs(value) < 1e308 else math.inf
    else:
        return None
    return found or None
