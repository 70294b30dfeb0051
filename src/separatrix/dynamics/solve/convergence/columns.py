"""Columns: one number per sample, kept by NumPy where torch would take longer to be called than to compute.

The bookkeeping of a solve is some fifty operations a step on a few numbers of each sample. On a CPU each costs torch
three to five microseconds and NumPy less than one, and tensors and arrays share their memory. On other devices, and
inside the transforms of ``torch.func``, columns are tensors. Both have ``where``, ``stack``, ``isfinite``, ``amax``,
``clip`` and the operators, which is all that is used of them; what differs stands here.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true, any_true, transforms_active

Column: TypeAlias = Any
"""A NumPy array (batch,), or a tensor."""


def on_host(z: Tensor) -> bool:
    """Whether columns that belong to states like z are arrays."""
    return type(z) is Tensor and z.device.type == "cpu" and not transforms_active()


def tensor_of(column: Column) -> Tensor:
    """The column as a tensor, which shares its memory."""
    return column if isinstance(column, Tensor) else torch.from_numpy(column)


def column_of(tensor: Tensor, like: Column) -> Column:
    """A tensor (batch,) as a column of the same kind as another."""
    return tensor if isinstance(like, Tensor) else tensor.numpy()


def norms(states: Tensor, host: bool) -> Column:
    """Euclidean norms of the rows."""
    found = torch.linalg.vector_norm(states, dim=-1)
    return found.numpy() if host else found


def any_of(mask: Column) -> bool:
    """Whether an entry is true."""
    return any_true(mask) if isinstance(mask, Tensor) else bool(numpy.count_nonzero(mask))


def all_of(mask: Column) -> bool:
    """Whether every entry is true."""
    return all_true(mask) if isinstance(mask, Tensor) else bool(numpy.count_nonzero(mask) == mask.size)


def quietly() -> numpy.errstate:
    """A context in which arrays overflow, and are divided by zero, as silently as tensors."""
    return numpy.errstate(all="ignore")
