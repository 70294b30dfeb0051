"""Checks of array arguments. Bad input raises at once: which argument, the rule, what came."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor

from .errors import InvalidInput, ShapeError
from .scalars import in_words, require_integer as require_integer, require_positive as require_positive


def as_tensor(
    value: Any,
    name: str,
    *,
    dtype: torch.dtype | None = None,
    allow_complex: bool = False,
    half: bool = True,
    finite: bool = True,
) -> Tensor:
    """A tensor from a tensor, a numpy array, a nested list or a number; finite entries required unless said.

    A floating tensor keeps its dtype unless ``dtype`` is given; integers become float64.

    Args:
        value: what was given.
        name: the argument, as errors call it.
        dtype: the precision to convert to.
        allow_complex: whether numbers may be complex; otherwise they are refused, not stripped of a part.
        half: whether numbers of 16 bits may be kept; linear algebra in torch has no room for them.
        finite: whether NaN and infinity are refused; not where each element of a batch is judged by itself.
    """
    try:
        # through numpy: torch would round a list of Python floats to single precision
        tensor = value.resolve_neg() if isinstance(value, Tensor) else torch.as_tensor(_ordinary(numpy.asarray(value)))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidInput(f"{name} must be an array of numbers; got {in_words(value)}.") from error
    if tensor.is_complex() and not (allow_complex or (dtype is not None and dtype.is_complex)):
        raise InvalidInput(f"{name} must be real; got complex numbers ({tensor.dtype}).")
    if dtype is None and not half and tensor.dtype in (torch.float16, torch.bfloat16):
        raise InvalidInput(f"{name} must be in float32 or float64; got {tensor.dtype}: pass {name}.float().")
    if dtype is not None:
        tensor = tensor.to(dtype)
    elif not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.to(torch.float64)
    if finite:
        require_finite(tensor, name)
    return tensor


def _ordinary(array: numpy.ndarray) -> numpy.ndarray:
    """The array itself, or a copy where torch cannot take or may not write it: reversed, byte-swapped, read-only."""
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.writeable and min(array.strides, default=0) >= 0 else array.copy()


def as_float64(value: Any, name: str) -> Tensor:
    """A finite float64 tensor, for closed forms and spectra."""
    return as_tensor(value, name, dtype=torch.float64)


def require_dense(value: object, name: str) -> None:
    """Refuse a tensor without numbers of its own, one for each entry: on the meta device, nested or sparse."""
    if not isinstance(value, Tensor):
        return
    if value.is_nested or value.layout != torch.strided:
        kind = "nested" if value.is_nested else str(value.layout).removeprefix("torch.")
        raise InvalidInput(f"{name} must be a dense tensor; got a {kind} one.")
    if value.is_meta:
        raise InvalidInput(f"{name} must hold numbers; got a tensor on the meta device.")


def require_finite(tensor: Tensor, name: str) -> None:
    """Refuse NaN and infinity, naming the first bad index."""
    bad = ~torch.isfinite(tensor)
    if bool(bad.any()):
        index = tuple(int(i) for i in bad.nonzero()[0])
        raise InvalidInput(f"{name} must be finite; entry {index} is {tensor[index].item()}.")


def require_matrix(tensor: Tensor, name: str) -> None:
    """Refuse anything that is not a matrix or a batch of matrices."""
    if tensor.ndim < 2:
        raise ShapeError(f"{name} must be a matrix (..., rows, columns); got shape {tuple(tensor.shape)}.")


def require_square(tensor: Tensor, name: str) -> None:
    """Refuse anything that is not a non-empty square matrix or a batch of them."""
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 1:
        raise ShapeError(f"{name} must be a square matrix (..., n, n); got shape {tuple(tensor.shape)}.")


def require_last_dim(tensor: Tensor, name: str, size: int) -> None:
    """Refuse a tensor whose last axis does not have ``size`` entries."""
    if tensor.ndim < 1 or tensor.shape[-1] != size:
        raise ShapeError(f"{name} must have {size} entries on its last axis; got shape {tuple(tensor.shape)}.")


def relative_asymmetry(matrix: Tensor) -> Tensor:
    """Largest entry of ``matrix - matrix.mT`` relative to the largest entry of ``matrix`` (0 for a zero matrix)."""
    matrix = as_tensor(matrix, "matrix", allow_complex=True, half=True, finite=False)
    scale = matrix.abs().amax(dim=(-2, -1))
    gap = (matrix - matrix.mT).abs().amax(dim=(-2, -1))
    return torch.where(scale > 0, gap / scale.clamp_min(torch.finfo(matrix.dtype).tiny), torch.zeros_like(gap))
