"""Checks of shapes and types while tests run, at a price that a daily run can pay.

The import hook of jaxtyping (``--jaxtyping-packages`` in pyproject.toml) decorates every function and data class of the
package. Decorating four thousand functions that a run may never call, decorating a function inside a function anew at
every call of the outer one, and checking the ten thousandth call of an inner loop like the first, made up two fifths of
the suite's time. Here a function is decorated when it is first called, its arguments are looked at once (jaxtyping does
it twice), and in each file of tests its first calls are checked; so are the first objects of a data class. Counted for
each test instead, the checks were a fifth of the time of the rooms with many small tests. Once its checks are spent a
function has its own lines again, with nothing between it and its caller.
SEPARATRIX_CHECK_EVERY_CALL=1 leaves all to jaxtyping, as the nightly run does.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import beartype
import jaxtyping

CALLS_PER_FILE = 3
_every_call = jaxtyping.jaxtyped
_strict = beartype.beartype(conf=beartype.BeartypeConf(violation_type=jaxtyping.TypeCheckError))
_file, _name = 0, ""


class _Budget:
    """How many calls are still checked in a file, of a function and of its likes made by the same lines."""

    __slots__ = ("file", "left")

    def __init__(self) -> None:
        self.file, self.left = -1, 0


_budgets: dict[CodeType, _Budget] = {}
_spent: list[tuple[FunctionType, CodeType]] = []
"""Functions that have their own lines again, each with the lines that check it."""
_NOBODYS = "<@shape checks>"
"""Files are named so by checkers of types that compile: who looks for a model's own lines passes over them."""
_MARK, _PLACE = "__shape_checks__", "what checks the first calls"


def install() -> None:
    """Stand in for the decorator that the hook applies. To be called before the package is imported."""
    if not os.environ.get("SEPARATRIX_CHECK_EVERY_CALL"):
        jaxtyping.jaxtyped = _jaxtyped  # type: ignore[assignment]


def begin_file(name: str) -> None:
    """From now on first calls are checked anew, unless this is another test of the same file."""
    global _file, _name
    if name != _name:
        _name, _file = name, _file + 1
        for function, detour in _spent:
            function.__code__ = detour
        _spent.clear()


def _jaxtyped(thing: Any = None, **options: Any) -> Any:
    """``jaxtyping.jaxtyped`` as the hook calls it; other uses are left to it."""
    if thing is not None:
        return _every_call(thing, **options)
    return lambda given: _of_class(given) if inspect.isclass(given) else _first_calls(given, options)


def _of_class(given: Any) -> Any:
    """A data class whose constructor goes through a function of ours is checked there, as jaxtyping itself has it."""
    if dataclasses.is_dataclass(given) and not hasattr(given.__init__, _MARK):
        given.__init__ = _first_calls(given.__init__, {"typechecker": beartype.beartype})
    return given


def _first_calls(function: Any, options: dict[str, Any]) -> Any:
    if not isinstance(function, FunctionType) or "<locals>" in function.__qualname__:
        return _wrapped(function, options)
    return _detoured(function, options)


def _detoured(function: FunctionType, options: dict[str, Any]) -> FunctionType:
    """The function itself, whose lines are others until its checks are spent: then it costs nothing to call.

    The lines hold the function, and no garbage collector looks into lines: not for functions inside functions, which
    come and go.
    """
    plain, own, checked = _copied(function), function.__code__, None
    budget = _Budget()

    def first(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if budget.file != _file:
            budget.file, budget.left = _file, CALLS_PER_FILE
        budget.left -= 1
        if budget.left <= 0:
            function.__code__ = own
            _spent.append((function, detour))
        if checked is None:
            checked = _checking(plain, options)
        return checked(*args, **kwargs)

    first.__code__ = first.__code__.replace(co_filename=_NOBODYS)
    detour = _detour(function, first)
    function.__code__ = detour
    function.__wrapped__ = plain  # type: ignore[attr-defined]  (who asks for the parameters is told those)
    setattr(function, _MARK, True)
    return function


def _detour(function: FunctionType, to: Callable[..., Any]) -> CodeType:
    """Lines that call ``to`` with whatever they are given, fit for the place of those of ``function``."""
    code = _empty_detour(len(function.__code__.co_freevars))
    constants = tuple(to if constant == _PLACE else constant for constant in code.co_consts)
    return code.replace(co_consts=constants, co_name=function.__name__)


@functools.cache
def _empty_detour(n_free: int) -> CodeType:
    free = [f"free_{number}" for number in range(n_free)]
    lines = ["def outer():", *(f" {name} = None" for name in free), " def detour(*args, **kwargs):"]
    lines += [f"  to = {_PLACE!r}", "  return to(*args, **kwargs)", *(f"  {name}" for name in free), " return detour"]
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), _NOBODYS, "exec"), names)
    found = names["outer"]().__code__
    assert isinstance(found, CodeType)
    return found


def _wrapped(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """A function in the place of one inside a function; the plain one, where its likes have spent their checks."""
    checked: Callable[..., Any] | None = None
    code = getattr(function, "__code__", None)
    budget = _Budget() if code is None else _budgets.setdefault(code, _Budget())
    if budget.file == _file and budget.left == 0:
        setattr(function, _MARK, True)
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if budget.file != _file:
            budget.file, budget.left = _file, CALLS_PER_FILE
        if budget.left == 0:
            return function(*args, **kwargs)
        budget.left -= 1
        if checked is None:
            checked = _checking(function, options)
        return checked(*args, **kwargs)

    call.__code__ = call.__code__.replace(co_filename=_NOBODYS)
    setattr(call, _MARK, True)
    return call


def _checking(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The function with its checks."""
    if _is_readable(function):
        try:
            return _every_call(_strict(_copied(function)), typechecker=None)  # type: ignore[no-any-return]
        except beartype.roar.BeartypeDecorHintException:  # parameters of a decorated function
            pass
    return _every_call(_copied(function), **options)  # type: ignore[no-any-return]


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the same lines, since beartype writes types in the place of the words of its annotations."""
    if not isinstance(function, FunctionType):
        return function
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(copy, function)
    vars(copy).pop("__wrapped__")
    vars(copy).update(vars(function))
    copy.__annotations__ = dict(function.__annotations__)
    return copy


def _is_readable(function: Callable[..., Any]) -> bool:
    """Whether every annotation has a meaning here. What a generator yields, names of an outer function and names that
    only type checkers import are left to jaxtyping, which passes over them."""
    if inspect.isgeneratorfunction(inspect.unwrap(function)):
        return False
    try:
        inspect.get_annotations(function, eval_str=True)
    except Exception:
        return False
    return True
