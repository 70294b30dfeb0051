"""How a room opens: its public names are those of its stub, resolved on first use.

``__init__.pyi`` lists what a room or sub-room offers, for people, type checkers and this file alike. A room takes over
all names of a sub-room with ``from .flows import *``, so that a name is written down once, beside the files it comes
from.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lazy_loader

GUARDED = tuple(
    f"separatrix.{room}"
    for room in (
        "core", "dynamics", "matrices", "theory", "diagnose", "advise", "nn", "tasks", "training", "lab", "report",
        "sources",
    )
)  # fmt: skip
"""Rooms whose public functions name the argument that a failure is owed to."""
SERVING = "separatrix.core"
"""The room whose functions are called by all others: there the caller's own door knows what its user called things."""
_PACKAGE = str(Path(__file__).parent.parent)


def open_room(package: str, filename: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the stub beside its ``__init__.py``.

    Cost: reading the stubs of the package and of its sub-rooms; no module is imported before a name is used.
    """
    modules, names = offered(Path(filename).with_suffix(".pyi"))
    find, listing, everything = lazy_loader.attach(package, modules, names)
    if not package.startswith(GUARDED):
        return find, listing, everything

    def enter(name: str) -> Any:
        found = guarded(find(name))
        if name in everything:
            vars(sys.modules[package])[name] = found
        return found

    return enter, listing, everything


def guarded(thing: Any) -> Any:
    """A public function, or class, whose failures name the argument they are owed to (see ``blame``).

    It takes the place of the plain one in its module, so that there is one object of the name; modules that imported
    the plain one before call it without the detour.
    """
    home = str(getattr(thing, "__module__", ""))
    if not home.startswith(GUARDED) or home not in sys.modules or hasattr(thing, "__guarded__"):
        return thing
    names, name = vars(sys.modules[home]), str(getattr(thing, "__name__", ""))
    if isinstance(thing, types.FunctionType) and names.get(name) is thing:
        named = _naming_the_argument(thing)
        names.update({alias: named for alias, value in names.items() if value is thing})
        return named
    if isinstance(thing, type) and issubclass(thing, BaseException):
        return thing
    build = vars(thing).get("__init__") if isinstance(thing, type) else None
    if build is not None and not hasattr(build, "__guarded__"):
        setattr(thing, "__init__", _naming_the_argument(build))  # noqa: B010
    return thing


def _naming_the_argument(function: Any) -> Any:
    @functools.wraps(function)
    def named(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except Exception as error:
            serves = function.__module__.startswith(SERVING)
            if serves and sys._getframe(1).f_code.co_filename.startswith(_PACKAGE):
                raise
            from .doors.blame import blamed  # of a failed call alone

            better = blamed(function, args, options, error)
            if better is None:
                raise
            raise better from error

    named.__guarded__ = True  # type: ignore[attr-defined]
    return named


def offered(stub: Path) -> tuple[set[str], dict[str, list[str]]]:
    """Sub-modules that a stub offers as they are, and names by the relative module they come from."""
    modules: set[str] = set()
    names: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        listed = [alias.name for alias in node.names]
        if node.module is None:
            modules.update(listed)
        elif listed == ["*"]:
            modules.add(node.module)
            _, inner = offered(stub.parent / node.module / "__init__.pyi")
            names.setdefault(node.module, []).extend(name for group in inner.values() for name in group)
        else:
            names.setdefault(node.module, []).extend(listed)
    return modules, names


def public_names(full: str) -> list[str]:
    """Names under which a function or method defined as ``full`` is public, the shortest first; else ``full`` alone.

    Example:
        >>> public_names("separatrix.theory.attention.counting.count_stable")
        ['separatrix.theory.count_stable', 'separatrix.theory.attention.count_stable']
    """
    package, *parts = full.split(".")
    root = Path(__file__).parent.parent
    found = []
    for depth in range(1, len(parts)):
        room = root.joinpath(*parts[:depth])
        if package == root.name and (room / "__init__.pyi").is_file():
            found += _offered_as(room, parts[depth:], ".".join((package, *parts[:depth])))
    return found or [full]


def _offered_as(room: Path, inside: list[str], prefix: str) -> list[str]:
    """The name from a room on, if the room offers the head of what a module inside it defines."""
    for names in _all_offered(room / "__init__.pyi").values():
        for cut in range(1, len(inside)):
            if inside[cut] in names and _defines(room.joinpath(*inside[:cut])):
                return [".".join((prefix, *inside[cut:]))]
    return []


def _defines(module: Path) -> bool:
    return module.with_suffix(".py").is_file()


@functools.cache
def _all_offered(stub: Path) -> dict[str, list[str]]:
    return offered(stub)[1]
