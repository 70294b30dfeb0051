"""Checks of array arguments. Bad input raises at once: which argument, the rule, what came."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy
import torch
from torch import Tensor

from .errors import InvalidInput, ShapeError


def as_tensor(
    value: Any, name: str, *, dtype: torch.dtype | None = None, allow_complex: bool = False, half: bool = True
) -> Tensor:
    """A tensor from a tensor, a numpy array, a nested list or a number; finite entries required.

    A floating tensor keeps its dtype unless ``dtype`` is given; integers become float64.

    Args:
        value: what was given.
        name: the argument, as errors call it.
        dtype: the precision to convert to.
        allow_complex: whether numbers may be complex; otherwise they are refused, not stripped of a part.
        half: whether numbers of 16 bits may be kept; linear algebra in torch has no room for them.
    """
    try:
        # through numpy: torch would round a list of Python floats to single precision
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(numpy.asarray(value))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidInput(f"{name} must be an array of numbers; got {shown(value)}.") from error
    if tensor.is_complex() and not (allow_complex or (dtype is not None and dtype.is_complex)):
        raise InvalidInput(f"{name} must be real; got complex numbers ({tensor.dtype}).")
    if dtype is None and not half and tensor.dtype in (torch.float16, torch.bfloat16):
        raise InvalidInput(f"{name} must be in float32 or float64; got {tensor.dtype}: pass {name}.float().")
    if dtype is not None:
        tensor = tensor.to(dtype)
    elif not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.to(torch.float64)
    require_finite(tensor, name)
    return tensor


def as_float64(value: Any, name: str) -> Tensor:
    """A finite float64 tensor, for closed forms and spectra."""
    return as_tensor(value, name, dtype=torch.float64)


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


def require_number(
    value: Any,
    name: str,
    *,
    at_least: float | int = -math.inf,
    at_most: float | int = math.inf,
    rule: str | None = None,
) -> float:
    """A finite real number between two limits, as a Python float; anything else is refused.

    Args:
        value: a Python or NumPy number, or a tensor of one.
        name: the argument, as errors call it.
        at_least: smallest number that may be given.
        at_most: largest number that may be given.
        rule: what it must be, as errors say it; from the limits if not given.
    """
    number = _number(value)
    if not (math.isfinite(number) and at_least <= number <= at_most):
        raise InvalidInput(f"{name} must be {rule or _rule(at_least, at_most)}; got {shown(value)}.")
    return number


def require_positive(value: Any, name: str) -> float:
    """A positive finite number, as a Python float; anything else is refused."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise InvalidInput(f"{name} must be a positive number; got {shown(value)}.")
    return number


def require_integer(value: Any, name: str, *, at_least: int) -> int:
    """Refuse anything but an integer of at least the given size."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # a fraction, text, nothing, several numbers
        number = None
    if number is None or number < at_least:
        raise InvalidInput(f"{name} must be an integer of at least {at_least}; got {shown(value)}.")
    return number


def require_flags(**flags: Any) -> None:
    """Refuse whatever is neither ``True`` nor ``False``: the word "no" would count as yes.

    Example:
        >>> require_flags(merging="no")
        Traceback (most recent call last):
        separatrix.core.errors.InvalidInput: merging must be True or False; got 'no'.
    """
    for name, value in flags.items():
        if not isinstance(value, bool | numpy.bool_):
            raise InvalidInput(f"{name} must be True or False; got {shown(value)}.")


def require_kind(value: Any, name: str, kind: type[Any], wanted: str) -> Any:
    """Refuse what is no object of a class; ``wanted`` says in words what is (``"a flow, such as AttentionFlow"``)."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} must be {wanted}; got {shown(value)}.")
    return value


def shown(value: Any, width: int = 60) -> str:
    """A value as an error shows it: short ones as they are, arrays by shape, what is long by its kind.

    Example:
        >>> shown("no"), shown(torch.zeros(2, 3)), shown(len)
        ("'no'", 'an array of shape (2, 3)', 'builtin_function_or_method')
    """
    if isinstance(value, Tensor | numpy.ndarray) and value.ndim:
        return f"an array of shape {tuple(value.shape)}"
    plain = value is None or isinstance(value, str | bytes | int | float | complex | list | tuple | dict)
    text = repr(value) if plain or isinstance(value, Tensor | numpy.generic | numpy.ndarray) else ""
    return text if 0 < len(text) <= width and "\n" not in text else type(value).__name__


def _number(value: Any) -> float:
    """A real number as a float; NaN for everything that is none."""
    if isinstance(value, bool | numpy.bool_ | str | bytes | complex | numpy.complexfloating):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # None, a list, a tensor of several numbers
        return math.nan


def _rule(at_least: float | int, at_most: float | int) -> str:
    if at_most < math.inf:
        return f"a number from {at_least:g} to {at_most:g}"
    return f"a number of at least {at_least:g}" if at_least > -math.inf else "a finite number"


def relative_asymmetry(matrix: Tensor) -> Tensor:
    """Largest entry of ``matrix - matrix.mT`` relative to the largest entry of ``matrix`` (0 for a zero matrix)."""
    scale = matrix.abs().amax(dim=(-2, -1))
    gap = (matrix - matrix.mT).abs().amax(dim=(-2, -1))
    return torch.where(scale > 0, gap / scale.clamp_min(torch.finfo(matrix.dtype).tiny), torch.zeros_like(gap))
