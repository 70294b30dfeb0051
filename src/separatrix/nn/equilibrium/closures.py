"""The modules that a cell uses, whatever form it has: a module, a method, a closure, a partial, a callable object.

A layer has to know them: their parameters are its parameters, their dropout masks are renewed by it, and batch
normalisation among them is refused.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

_DEPTH = 6
"""How many references are followed: a partial of a method of an object that holds a list of modules takes four."""


def modules_used(cell: Any) -> list[nn.Module]:
    """The outermost modules that can be reached from a cell, each once.

    Followed are closures, default values, the object of a method, the parts of a ``functools.partial``, attributes of
    callable objects, lists, tuples and dictionaries, and those globals of a function that its code names.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> modules_used(lambda z, x: layer(z) + x)
        [Linear(in_features=2, out_features=2, bias=True)]
    """
    found: list[nn.Module] = []
    _collect(cell, found, set(), _DEPTH)
    return found


def _collect(thing: Any, found: list[Any], seen: set[int], depth: int, *, tensors: bool = False) -> None:
    if depth < 0 or id(thing) in seen or isinstance(thing, (str, bytes, int, float, type, types.ModuleType)):
        return
    seen.add(id(thing))
    if isinstance(thing, nn.Module) or (tensors and isinstance(thing, Tensor) and thing.requires_grad):
        found.append(thing)
        return
    for part in _parts(thing):
        _collect(part, found, seen, depth - 1, tensors=tensors)


def _parts(thing: Any) -> Iterator[Any]:
    """What a thing refers to, one level down."""
    if isinstance(thing, types.MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, types.FunctionType):
        yield from _parts_of_a_function(thing)
    elif isinstance(thing, functools.partial):
        yield from (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, (list, tuple, set)):
        yield from thing
    elif isinstance(thing, dict):
        yield from thing.values()
    elif callable(thing) or type(thing).__module__ not in ("builtins", "torch", "numpy"):
        yield from getattr(thing, "__dict__", {}).values()
        if callable(thing):  # and what its own code names
            yield getattr(type(thing).__call__, "__func__", type(thing).__call__)


def _parts_of_a_function(function: types.FunctionType) -> Iterator[Any]:
    yield from _parts_of_its_own(function)
    for code in _codes(function.__code__):
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)


def _parts_of_its_own(function: types.FunctionType) -> Iterator[Any]:
    """What a function refers to, but for its globals."""
    yield from (function.__defaults__ or (), function.__kwdefaults__ or {})
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that has no value yet
            continue
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions and comprehensions written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def contains(outer: nn.Module, inner: nn.Module) -> bool:
    """Whether a module has another one somewhere inside."""
    return any(part is inner for part in outer.modules())


def under_construction(module: nn.Module) -> bool:
    """Whether a method of this very object is being run, as when a module makes a layer of its own method."""
    own = inspect.currentframe()
    frame = own.f_back if own is not None else None
    while frame is not None:
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        if names and frame.f_locals.get(names[0]) is module:
            return True
        frame = frame.f_back
    return False


def copied(thing: Any, memo: dict[int, Any]) -> Any:
    """A deep copy in which functions are copied too, as far as they close over modules or trained tensors.

    ``copy.deepcopy`` hands on a function as it is, with the weights of the model that it was written in. What cannot be
    copied stays as it is; ``shared`` tells.
    """
    if id(thing) in memo:
        return memo[id(thing)]
    try:
        if isinstance(thing, types.FunctionType):
            return _copied_function(thing, memo)
        if isinstance(thing, functools.partial):
            args, keywords = copied(thing.args, memo), copied(thing.keywords, memo)
            return functools.partial(copied(thing.func, memo), *args, **keywords)
        if type(thing) in (list, tuple):
            return type(thing)(copied(part, memo) for part in thing)
        if type(thing) is dict:
            return {name: copied(part, memo) for name, part in thing.items()}
        return copy.deepcopy(thing, memo)
    except (TypeError, RuntimeError, NotImplementedError, AttributeError):  # locks, tensors with a graph, open files
        return thing


def _copied_function(function: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    if not any(_holds_weights(part) for part in _parts_of_its_own(function)):
        return function
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, cells or None)
    memo[id(function)] = made  # it may close over itself
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        try:
            cell.cell_contents = _copied_if_weights(original.cell_contents, memo)
        except ValueError:  # a name that has no value yet
            continue
    made.__defaults__ = _copied_parts(function.__defaults__, memo)
    made.__kwdefaults__ = _copied_parts(function.__kwdefaults__, memo)
    made.__qualname__, made.__doc__, made.__module__ = function.__qualname__, function.__doc__, function.__module__
    made.__dict__.update({name: copied(part, memo) for name, part in function.__dict__.items()})
    return made


def _copied_parts(parts: Any, memo: dict[int, Any]) -> Any:
    if isinstance(parts, tuple):
        return tuple(_copied_if_weights(part, memo) for part in parts)
    return parts and {name: _copied_if_weights(part, memo) for name, part in parts.items()}


def _copied_if_weights(thing: Any, memo: dict[int, Any]) -> Any:
    """What holds no weights may be meant to be one thing for all copies: a counter, a log, a table."""
    return copied(thing, memo) if _holds_weights(thing) else thing


def _holds_weights(thing: Any) -> bool:
    return bool(weights_used(thing))


def weights_used(thing: Any) -> list[nn.Module | Tensor]:
    """The outermost modules with weights, and the trained tensors outside of modules, that can be reached."""
    return [part for part in _reached(thing) if isinstance(part, Tensor) or _has_weights(part)]


def shared(original: Any, copy: Any) -> bool:
    """Whether weights of the original can be reached from its copy, parts of which may still be in the making."""
    known = {id(part) for part in weights_used(original)}
    return any(id(part) in known for part in _reached(copy))


def _reached(thing: Any) -> list[Any]:
    found: list[Any] = []
    _collect(thing, found, set(), _DEPTH, tensors=True)
    return found


def _has_weights(module: nn.Module) -> bool:
    return any(True for _ in module.parameters()) or any(True for _ in module.buffers())
