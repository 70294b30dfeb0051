"""A docstring describes the arguments that there are."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from test_public_surface import NAMES

_SECTION = re.compile(r"^( *)Args:\n(.*?)(?=^\1\S|\Z)", re.MULTILINE | re.DOTALL)


def described(docstring: str) -> list[str]:
    """Names that stand in the section ``Args``."""
    found = _SECTION.search(inspect.cleandoc(docstring) + "\n")
    return re.findall(r"^ {4}\*{0,2}(\w+):", found[2], re.MULTILINE) if found else []


def documented() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions and classes, and the methods of these classes."""
    for room, name, module in NAMES:
        value = getattr(importlib.import_module(room), name) if module else None
        if not (inspect.isfunction(value) or inspect.isclass(value)) or not value.__module__.startswith("separatrix."):
            continue
        yield name, value
        for method, member in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(member) and not method.startswith("_"):
                yield f"{name}.{method}", member


def test_the_arguments_described_are_those_of_the_signature() -> None:
    documented_by_name = {name: value for name, value in documented() if described(value.__doc__ or "")}
    unknown = {
        name: extra
        for name, value in documented_by_name.items()
        if (extra := set(described(value.__doc__ or "")) - set(inspect.signature(value).parameters))
    }
    assert len(documented_by_name) > 200
    assert not unknown, f"described, but no arguments: {unknown}"


def test_every_entry_of_the_section_is_read() -> None:
    text = "Sum.\n\n    Args:\n        first: one,\n            or: more.\n        second: two.\n\n    Cost: x."
    assert described(text) == ["first", "second"]
