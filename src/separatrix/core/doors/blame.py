"""Which argument a failed call owes its failure to: what a public function does at the door of its room.

A public function that ends in an error of Python, NumPy or torch is looked at once more: an argument that is not of the
kind its annotation says, whose axes do not agree with another's, that is empty or not finite, asks for more memory than
there is, or holds numbers that cannot be computed with (``blame_numbers``), is named in one sentence. Where every
argument is as it should be the fault is not the caller's, and the error is left as it is.

Nothing happens to a call that succeeds: this module is imported after a failure.
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import importlib
import inspect
import sys
import sysconfig
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import torch
from jaxtyping import AbstractArray, TypeCheckError, jaxtyped
from torch import Tensor

from ..errors import InvalidInput, SeparatrixError, ShapeError
from ..scalars import LARGEST, in_words, is_integer, is_number
from .blame_numbers import no_path, out_of_range, too_few, too_much, unsuited

_LIBRARIES = {sysconfig.get_paths()[place] for place in ("stdlib", "platstdlib", "purelib", "platlib")}
_ROOTS = (str(Path(__file__).parents[2]), *_LIBRARIES, "<")
_PLAIN = {float: "a number", int: "an integer", bool: "True or False", str: "text", types.NoneType: "None"}
_DTYPES = {"Float": "floating numbers", "Int": "integers", "Bool": "booleans", "Complex": "complex numbers"}
_OF_SHAPES = (
    "size of tensor",
    "number of sizes",
    "shapes cannot be multiplied",
    "mismatch in shape",
    "dimension out of range",
    "stack expects",
    "supported on matrices",
    "same number of dimensions",
    "tuple index out of range",
    "could not be broadcast",
    "incompatible shapes",
    "at least 1d",
    "at least 2 dimensions",
    "square matrices",
    "not enough values to unpack",
    "expanded size of the tensor",
    "the broadcast shape",
    "0-d tensor",
)
"""What torch and NumPy say of shapes that do not fit."""
_LOOKED_AT = 20
"""Elements of a sequence whose kind is looked at."""


def blamed(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], error: Exception) -> Any:
    """The error in the caller's words, or None if no argument is to blame."""
    if isinstance(error, SeparatrixError | TypeCheckError) or _raised_by_a_stranger(error):
        return None
    try:
        given = inspect.signature(function).bind(*args, **options).arguments
    except TypeError:  # an unknown or a missing keyword, which Python names itself
        return None
    kinds = _kinds(function)
    for name, value in given.items():
        if name in kinds and not fits(value, kinds[name]):
            return InvalidInput(f"{name} must be {in_kind_words(kinds[name])}; got {in_words(value)}.")
    return (
        too_much(given, error)
        or _disagreeing(given, kinds)
        or _unusable(given)
        or _empty(given, error)
        or _shared(given, error)
        or _unfitting(given, error)
        or no_path(given, error)
        or too_few(given, error)
        or unsuited(given, error)
        or out_of_range(given, error)
    )


@dataclasses.dataclass(frozen=True)
class ClassByName:
    """A class of which only the name is known here."""

    __name__: str

    def may_have(self, value: Any) -> bool:
        """Whether a value may be of the class; the name may be that of a union, so only plain numbers cannot."""
        if not isinstance(value, int | float | complex | types.NoneType | Tensor):
            return True
        return self.__name__ in {base.__name__ for base in type(value).__mro__}


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of an annotated kind; what cannot be told fits.

    Example:
        >>> fits(3, float), fits("3", float), fits(True, int), fits([1, "a"], list[int])
        (True, False, False, False)
    """
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, ClassByName):
        return kind.may_have(value)
    if isinstance(kind, typing.TypeVar):
        inside = kind.__constraints__ or ((kind.__bound__,) if kind.__bound__ is not None else (object,))
        return any(fits(value, part) for part in inside)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in inside)
    if origin is typing.Literal:
        return any(value is part or (isinstance(value, str) and value == part) for part in inside)
    if kind is float or kind is int:
        return (is_number if kind is float else is_integer)(value) or (kind is float and isinstance(value, float))
    if origin is collections.abc.Callable or kind is Callable:
        return callable(value)
    if origin is type:
        return isinstance(value, type)
    if inspect.isclass(origin):
        return _is_a(value, origin) and _elements_fit(value, origin, inside)
    return _is_a(value, kind) if inspect.isclass(kind) else True


def _is_a(value: Any, kind: Any) -> bool:
    try:
        with jaxtyped("context"):  # axes that a caller has given a length are not ours
            return isinstance(value, kind)
    except Exception:  # a protocol, or a shape that refers to other arguments
        return True


def _elements_fit(value: Any, origin: type, inside: tuple[Any, ...]) -> bool:
    if isinstance(value, str) and inside[:1] != (str,):
        return False
    if isinstance(value, bytes | bytearray) and inside[:1] not in ((), (int,), (Any,)):
        return False
    if not (isinstance(value, list | tuple) and len(inside) == 1 + (inside[-1] is Ellipsis)):
        return True
    return all(fits(element, inside[0]) for element in value[:_LOOKED_AT])


def in_kind_words(kind: Any) -> str:
    """An annotated kind as an error says it.

    Example:
        >>> in_kind_words(float | None), in_kind_words(tuple[int, ...])
        ('a number or None', 'a sequence of int')
    """
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, typing.TypeVar):
        return " or ".join(in_kind_words(part) for part in kind.__constraints__ or (kind.__bound__,))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(in_kind_words(part) for part in inside))
    if origin is typing.Literal:
        return " or ".join(repr(part) for part in inside)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if inspect.isclass(kind) and issubclass(kind, AbstractArray):
        return _array_words(kind)
    if origin is collections.abc.Callable or kind is Callable:
        return "a function"
    if inspect.isclass(origin) and issubclass(origin, collections.abc.Mapping):
        return "a dictionary"
    if inspect.isclass(origin) and inside:
        return f"a sequence of {getattr(inside[0], '__name__', inside[0])}"
    name = getattr(kind, "__name__", str(kind))
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _array_words(kind: Any) -> str:
    numbers = next((words for name, words in _DTYPES.items() if kind.__name__.startswith(name)), "numbers")
    axes = kind.dim_str.split()
    shape = f"({', '.join(axes)}{',' if len(axes) == 1 else ''})" if axes else "()"
    return f"a tensor of {numbers} of shape {shape}"


def _disagreeing(given: dict[str, Any], kinds: dict[str, Any]) -> ShapeError | None:
    """Two arguments whose axes of one name have several lengths."""
    seen: dict[str, tuple[int, str]] = {}
    for name, value in given.items():
        for axis, length in _named_axes(value, kinds.get(name)):
            other, whose = seen.setdefault(axis, (length, name))
            if other != length:
                both = f"{whose} {tuple(given[whose].shape)} and {name} {tuple(value.shape)}"
                return ShapeError(f"{whose} and {name} must agree on their axis {axis}; got shapes {both}.")
    return None


def _named_axes(value: Any, kind: Any) -> Iterator[tuple[str, int]]:
    if not (isinstance(value, Tensor) and inspect.isclass(kind) and issubclass(kind, AbstractArray)):
        return
    axes = kind.dim_str.split()
    starred = [place for place, axis in enumerate(axes) if not axis.isidentifier()]
    first = starred[0] if starred else len(axes)
    yield from zip(axes[:first], value.shape[:first], strict=False)
    if starred:
        behind = len(axes) - 1 - starred[-1]
        yield from zip(axes[len(axes) - behind :], value.shape[value.ndim - behind :], strict=True)


def _unusable(given: dict[str, Any]) -> InvalidInput | None:
    """An argument that is empty, not finite or too large to count."""
    for name, value in given.items():
        if isinstance(value, Tensor) and value.numel() == 0:
            return ShapeError(f"{name} must not be empty; got shape {tuple(value.shape)}.")
        if isinstance(value, Tensor) and not bool(torch.isfinite(value).all()):
            return InvalidInput(f"{name} must be finite; got NaN or infinity in {in_words(value)}.")
        if isinstance(value, int) and abs(value) > LARGEST:
            return InvalidInput(f"{name} must be at most 2**62; got {in_words(value)}.")
        if isinstance(value, float) and value - value != 0:
            return InvalidInput(f"{name} must be finite; got {value}.")
    return None


def _empty(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """A collection without a single element, where one was looked for."""
    if not isinstance(error, ValueError | IndexError | KeyError | ZeroDivisionError | StopIteration | RuntimeError):
        return None
    for name, value in given.items():
        if isinstance(value, list | tuple | dict | set) and not value:
            return InvalidInput(f"{name} must not be empty; got {value!r}.")
    return None


def _shared(given: dict[str, Any], error: Exception) -> InvalidInput | None:
    """A tensor to be filled whose entries share memory, as an expanded one's do."""
    if "refers to a single memory location" not in str(error):
        return None
    for name, value in given.items():
        if isinstance(value, Tensor) and 0 in value.stride() and value.numel() > 1:
            return InvalidInput(f"{name} must have memory of its own; got an expanded view: pass {name}.clone().")
    return None


def _unfitting(given: dict[str, Any], error: Exception) -> ShapeError | None:
    """The shapes of all arguments, where torch or NumPy says that some do not fit together."""
    if not any(words in str(error).lower() for words in _OF_SHAPES):
        return None
    shapes = {name: _shape(value) for name, value in given.items() if _shape(value) is not None}
    if not shapes:
        return None
    listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    return ShapeError(f"{' and '.join(shapes)} must have shapes that fit; got {listed}.")


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array, of a number, or of a list as it would become one."""
    if isinstance(value, list | tuple):
        try:
            return numpy.shape(value)
        except ValueError:  # rows of several lengths
            return None
    return tuple(value.shape) if hasattr(value, "shape") else () if is_number(value) else None


def _kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotated kinds of the parameters; those that cannot be read are left out."""
    inner = inspect.unwrap(function)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = parameter.annotation
        try:
            kind = eval(kind, inner.__globals__, _TypeOnly(inner.__module__)) if isinstance(kind, str) else kind
        except Exception:  # names of nothing that can be imported
            if not kind.isidentifier():
                continue
            kind = ClassByName(kind)
        several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if kind is not parameter.empty and not several:
            found[name] = types.NoneType if kind is None else kind
    return found


class _TypeOnly(dict[str, Any]):
    """Names that a module imports for type checkers alone, found when they are asked for."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._package = module.rpartition(".")[0]
        self._places: dict[str, tuple[str, str]] = {}
        home = sys.modules.get(module)
        for node in ast.parse(inspect.getsource(home)).body if home is not None else ():
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                for inner in node.body:
                    self._note(inner)

    def _note(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ImportFrom):
            place = "." * node.level + (node.module or "")
            self._places.update({name.asname or name.name: (place, name.name) for name in node.names})

    def __missing__(self, name: str) -> Any:
        place, own = self._places[name]
        return getattr(importlib.import_module(place, self._package), own)


def _raised_by_a_stranger(error: Exception) -> bool:
    """Whether code of the caller's own, such as a model or a function handed over, took part in the failure."""
    frame = error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_filename
        if not name.startswith(_ROOTS) and not name.endswith(".pyx"):  # compiled code of a library tells no path
            return True
        frame = frame.tb_next
    return False
