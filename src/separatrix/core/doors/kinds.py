"""The classes of one kind that a room offers, by name: what its stub lists is known by name, without a second list."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TypeVar

Kind = TypeVar("Kind")


def public_kinds(room: str, base: type[Kind]) -> dict[str, type[Kind]]:
    """Concrete subclasses of ``base`` among the public names of a room, by their name in small letters with hyphens.

    Cost: imports every module of the room.

    Example:
        >>> from separatrix.core.errors import InvalidInput
        >>> "shape-error" in public_kinds("separatrix.core", InvalidInput)
        True
    """
    opened = importlib.import_module(room)
    offered = (getattr(opened, name) for name in sorted(opened.__all__))
    kinds = [value for value in offered if inspect.isclass(value) and issubclass(value, base)]
    return {hyphenated(kind.__name__): kind for kind in kinds if not inspect.isabstract(kind) and kind is not base}


def hyphenated(name: str) -> str:
    """A class name as people type it.

    Example:
        >>> hyphenated("NewtonKrylov")
        'newton-krylov'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
