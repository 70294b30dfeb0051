"""A readable line for objects that are no results: their class and what they were made of."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from .result import brief

_LINE = 100
_PART = 48


class Described:
    """Mix-in: ``repr`` is the call that makes such an object, with what it keeps of its arguments.

    Arguments are found by their names in ``made_of``, else among the attributes, with or without an underscore; those
    with their usual value, and those of which nothing is kept, are left out. Data classes, and classes that have words
    of their own (a torch module), keep these.

    Example:
        >>> class Corridor(Described):
        ...     def __init__(self, length: int = 4, width: int = 1) -> None:
        ...         self.length, self._width = length, width
        >>> Corridor(6)
        Corridor(length=6)
    """

    def made_of(self) -> Mapping[str, Any]:
        """Values of arguments that are kept under other names."""
        return {}

    def __repr__(self) -> str:
        for ancestor in type(self).__mro__:
            if ancestor not in (Described, object) and "__repr__" in vars(ancestor):
                return str(vars(ancestor)["__repr__"](self))
        line = f"{type(self).__name__}({', '.join(_arguments(self))})"
        return line if len(line) <= _LINE else f"{line[: _LINE - 2]}…)"


def _arguments(thing: Any) -> list[str]:
    try:
        parameters = list(inspect.signature(type(thing)).parameters.values())
    except (TypeError, ValueError):
        return []
    kept = thing.made_of()
    told = []
    for parameter in parameters:
        names = [name for name in (parameter.name, f"_{parameter.name}") if _holds(thing, name)]
        if parameter.name not in kept and not names:
            continue
        value = kept[parameter.name] if parameter.name in kept else getattr(thing, names[0])
        word = in_a_word(value)
        filled_in = parameter.default is None and word == type(value).__name__
        if not _usual(value, parameter.default) and not filled_in:
            told.append(f"{parameter.name}={word}")
    return told


def _holds(thing: Any, name: str) -> bool:
    """Whether an attribute is there already: a property might compute, or open what is closed."""
    return name in getattr(thing, "__dict__", {}) or any(
        inspect.ismemberdescriptor(vars(ancestor).get(name)) and hasattr(thing, name)
        for ancestor in type(thing).__mro__
    )


def _usual(value: Any, default: Any) -> bool:
    return value is default or (
        type(value) is type(default) and isinstance(value, str | int | float) and value == default
    )


def in_a_word(value: Any) -> str:
    """A value in an argument's place: numbers and words as they are, arrays by shape and range, the rest by name."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _PART else repr(value[: _PART - 1] + "…")
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    if isinstance(value, list | tuple | dict | set | frozenset) and len(value) > 4:
        return f"{type(value).__name__} of {len(value)}"
    own = type(value).__repr__
    if own is object.__repr__ or dataclasses.is_dataclass(value) or "\n" in (text := brief(value, _PART)):
        return type(value).__name__
    return type(value).__name__ if hasattr(value, "state_dict") else text
