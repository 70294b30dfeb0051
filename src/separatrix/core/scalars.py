"""Checks of single arguments: numbers, flags, objects of a kind. Nothing here imports torch: every room may use it."""

from __future__ import annotations

import math
import operator
from typing import Any

from .errors import InvalidInput

LARGEST = 2**62
"""No count is larger; an integer beyond 64 bits fails deep inside with other words."""


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
        raise InvalidInput(f"{name} must be {rule or _rule(at_least, at_most)}; got {in_words(value)}.")
    return number


def require_positive(value: Any, name: str) -> float:
    """A positive finite number, as a Python float; anything else is refused."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise InvalidInput(f"{name} must be a positive number; got {in_words(value)}.")
    return number


def is_number(value: Any) -> bool:
    """Whether a value is one real number, NaN excepted: of Python, of NumPy, or a tensor of one."""
    return not math.isnan(_number(value))


def is_integer(value: Any) -> bool:
    """Whether a value is one integer: of Python, of NumPy, or a tensor of one."""
    return _integer(value) is not None


def require_integer(value: Any, name: str, *, at_least: int) -> int:
    """Refuse anything but an integer of at least the given size, and of a size that a machine can count to."""
    number = _integer(value)
    if number is not None and number > LARGEST:
        raise InvalidInput(f"{name} must be an integer of at most 2**62; got {in_words(value)}.")
    if number is None or number < at_least:
        raise InvalidInput(f"{name} must be an integer of at least {at_least}; got {in_words(value)}.")
    return number


def require_flags(**flags: Any) -> None:
    """Refuse whatever is neither ``True`` nor ``False``: the word "no" would count as yes.

    Example:
        >>> require_flags(merging="no")
        Traceback (most recent call last):
        separatrix.core.errors.InvalidInput: merging must be True or False; got 'no'.
    """
    for name, value in flags.items():
        if not isinstance(value, bool) and not (_kind(value) == "b" and not value.shape):
            raise InvalidInput(f"{name} must be True or False; got {in_words(value)}.")


def require_kind(value: Any, name: str, cls: type[Any], wanted: str) -> Any:
    """Refuse what is no object of a class; ``wanted`` says in words what is (``"a flow, such as AttentionFlow"``)."""
    if not isinstance(value, cls):
        raise InvalidInput(f"{name} must be {wanted}; got {in_words(value)}.")
    return value


def in_words(value: Any, width: int = 60) -> str:
    """A value as an error shows it: short ones as they are, arrays by shape, what is long by its kind.

    Example:
        >>> in_words("no"), in_words([1, 2]), in_words(len)
        ("'no'", '[1, 2]', 'builtin_function_or_method')
    """
    is_array = hasattr(value, "shape") and hasattr(value, "tolist")  # of torch or NumPy, neither of which is imported
    if is_array and len(value.shape):
        return f"an array of shape {tuple(value.shape)}"
    plain = value is None or isinstance(value, str | bytes | int | float | complex | list | tuple | dict)
    text = repr(value) if plain or is_array else ""
    return text if 0 < len(text) <= width and "\n" not in text else type(value).__name__


def _kind(value: Any) -> str:
    """The letter of a NumPy number's kind, without importing NumPy; empty for everything else."""
    return str(getattr(getattr(value, "dtype", None), "kind", ""))


def _integer(value: Any) -> int | None:
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # a fraction, text, nothing, several numbers
        return None


def _number(value: Any) -> float:
    """A real number as a float; NaN for everything that is none."""
    if isinstance(value, bool | str | bytes | complex) or _kind(value) in ("b", "c"):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # None, a list, a tensor of several numbers
        return math.nan


def _rule(at_least: float | int, at_most: float | int) -> str:
    if at_most < math.inf:
        return f"a number from {at_least:g} to {at_most:g}"
    return f"a number of at least {at_least:g}" if at_least > -math.inf else "a finite number"
