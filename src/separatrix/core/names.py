"""From what a user gave to the object that is meant: one way for every argument that takes an object or a name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from .errors import InvalidInput, UnknownOption, unknown_name
from .scalars import in_words

Thing = TypeVar("Thing")
Kind = TypeVar("Kind", bound=type)


def resolve(
    kind: str,
    given: object,
    known: Mapping[str, Thing],
    *,
    base: type[Thing] | None = None,
    families: Mapping[str, Callable[[str], Thing]] | None = None,
    also: str | None = None,
) -> Thing:
    """The object that ``given`` names, or ``given`` itself if it is one.

    Args:
        kind: what is looked for, as the error says it (``"activation"``).
        given: an object, a name, or a name with a parameter (``"elliptic:0.5"``).
        known: objects by name.
        base: the class of admissible objects; ``None`` if only names are.
        families: by the part before the colon, what makes an object of the part behind it. An error it raises is
            passed on: the family is known, its parameter is wrong.
        also: what else the argument may be, handled by the caller, as the error says it (``"a positive number"``).

    Example:
        >>> resolve("activation", "tahn", {"tanh": 1, "relu": 2})
        Traceback (most recent call last):
        separatrix.core.errors.InvalidInput: unknown activation 'tahn'. Did you mean 'tanh'? Known: relu, tanh.
    """
    if base is not None and isinstance(given, base):
        return given
    if not isinstance(given, str):
        objects = None if base is None else f"{_article(base.__name__)} object"
        wanted = " or ".join(part for part in ("a name", objects, also) if part)
        shown, of_type = in_words(given), type(given).__name__
        raise InvalidInput(
            f"{kind} must be {wanted}; got {shown if shown == of_type else f'{shown} of type {of_type}'}."
        )
    if given in known:
        return known[given]
    head, colon, parameter = given.partition(":")
    if colon and families and head in families:
        return families[head](parameter)
    raise unknown_name(kind, given, [*known, *(f"{name}:..." for name in families or {})])


def choose(kind: str, given: object, options: Iterable[str], *, also: str | None = None) -> str:
    """``given`` if it is one of the options; ``also`` as in ``resolve``.

    Example:
        >>> choose("space", "tangent", ("tangent", "ambient"))
        'tangent'
    """
    return resolve(kind, given, {option: option for option in options}, also=also)


def suggest_options(kind: Kind) -> Kind:
    """Make constructors (``__init__`` and public class methods) name the nearest option when a keyword is misspelt.

    Example:
        >>> import dataclasses
        >>> @suggest_options
        ... @dataclasses.dataclass
        ... class Solver:
        ...     max_steps: int = 10
        >>> Solver(max_step=3)
        Traceback (most recent call last):
        separatrix.core.errors.UnknownOption: unknown option of Solver 'max_step'. Did you mean 'max_steps'? ...
    """
    kind.__init__ = _suggesting(kind.__init__, "")  # type: ignore[misc]
    for name, item in list(vars(kind).items()):
        if isinstance(item, classmethod) and not name.startswith("_"):
            setattr(kind, name, classmethod(_suggesting(item.__func__, f".{name}")))
    return kind


def _suggesting(build: Any, place: str) -> Any:
    """The same function, whose first argument is an object or class; a keyword that it lacks gets the nearest."""
    parameters = list(inspect.signature(build).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return build
    known = {parameter.name: None for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL}

    @functools.wraps(build)
    def checked(self: Any, *args: Any, **options: Any) -> Any:
        if not options.keys() <= known.keys():
            owner = self if isinstance(self, type) else type(self)
            require_options(f"{owner.__name__}{place}", options, known)
        return build(self, *args, **options)

    return checked


def require_options(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first keyword that is no option of a constructor."""
    options = list(known)
    for name in given:
        if name not in options:
            raise unknown_name(f"option of {owner}", name, options, error=UnknownOption)


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"
