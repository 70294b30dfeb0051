"""Numbers, lists and arrays as float64 tensors, with every digit the caller wrote."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor

from separatrix.core import InvalidInput, as_tensor


def as_float64(value: Any, name: str) -> Tensor:
    """A finite float64 tensor. Python numbers go through numpy, because torch would round them to float32 first."""
    return as_tensor(_exact(value, name), name, dtype=torch.float64)


def as_real(value: Any, name: str) -> Tensor:
    """A finite tensor that keeps the dtype of a tensor or array; lists and numbers become float64."""
    return as_tensor(_exact(value, name), name)


def _exact(value: Any, name: str) -> Any:
    if isinstance(value, Tensor | numpy.ndarray):
        return value
    try:
        return torch.from_numpy(numpy.asarray(value, dtype=numpy.float64).copy())
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} must be an array of numbers; got {type(value).__name__}.") from error
