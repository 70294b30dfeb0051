"""Numbers from users as float64 or complex128 tensors, without a detour through float32."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor

from separatrix.core import InvalidInput, as_tensor


def double(value: Any, name: str, dtype: torch.dtype = torch.float64) -> Tensor:
    """A finite float64 tensor from numbers, lists, arrays or tensors; 0.2 stays 0.2, not its float32 neighbour."""
    if not isinstance(value, Tensor):
        try:
            value = numpy.asarray(value)
        except ValueError as error:
            raise InvalidInput(f"{name} must be an array of numbers; got {type(value).__name__}.") from error
    return as_tensor(value, name, dtype=dtype)
