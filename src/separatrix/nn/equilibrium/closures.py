"""The modules that a cell uses, whatever form it has: a module, a method, a closure, a partial, a callable object.

A layer has to know them: their parameters are its parameters, their dropout masks are renewed by it, and batch
normalisation among them is refused.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

from torch import nn

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


def _collect(thing: Any, found: list[nn.Module], seen: set[int], depth: int) -> None:
    if depth < 0 or id(thing) in seen or isinstance(thing, (str, bytes, int, float, type, types.ModuleType)):
        return
    seen.add(id(thing))
    if isinstance(thing, nn.Module):
        found.append(thing)
        return
    for part in _parts(thing):
        _collect(part, found, seen, depth - 1)


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
    yield from (function.__defaults__ or (), function.__kwdefaults__ or {})
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that has no value yet
            continue
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped
    for code in _codes(function.__code__):
        yield from (function.__globals__[name] for name in code.co_names if name in function.__globals__)


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
