"""Checks of shapes and types while tests run, at a price that a daily run can pay.

The import hook of jaxtyping (``--jaxtyping-packages`` in pyproject.toml) decorates every function of the package.
Decorating four thousand functions that a run may never call, and checking the ten thousandth call of an inner loop like
the first, made up two fifths of the suite's time. Here a function is decorated when it is first called, and in each
test its first calls are checked. SEPARATRIX_CHECK_EVERY_CALL=1 checks all, as the nightly run does.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

import jaxtyping

CALLS_PER_TEST = 8
_every_call = jaxtyping.jaxtyped
_test = 0


def install() -> None:
    """Stand in for the decorator that the hook applies. To be called before the package is imported."""
    if not os.environ.get("SEPARATRIX_CHECK_EVERY_CALL"):
        jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment]


def begin_test() -> None:
    """From now on first calls are checked anew."""
    global _test
    _test += 1


def _jaxtyped(thing: Any = None, **options: Any) -> Any:
    """``jaxtyping.jaxtyped`` as the hook calls it; other uses, and classes, are left to it."""
    if thing is not None:
        return _every_call(thing, **options)
    return lambda given: _of_class(given, options) if inspect.isclass(given) else _first_calls(given, options)


def _of_class(given: Any, options: dict[str, Any]) -> Any:
    """A dataclass whose constructor goes through a function of ours is checked there, as jaxtyping itself has it."""
    through_ours = getattr(given.__init__, "__globals__", {}).get("__name__") == __name__
    return given if through_ours else _every_call(given, **options)


def _first_calls(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    checked: Callable[..., Any] | None = None
    test, left = -1, 0

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked, test, left
        if test != _test:
            test, left = _test, CALLS_PER_TEST
        if left == 0:
            return function(*args, **kwargs)
        left -= 1
        if checked is None:
            checked = _every_call(function, **options)
        return checked(*args, **kwargs)

    return call
