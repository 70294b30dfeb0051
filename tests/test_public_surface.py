from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import separatrix
from separatrix.core.rooms import offered

ROOT = Path(separatrix.__file__).parent
STUBS = sorted(ROOT.rglob("__init__.pyi"))


def public_names() -> list[tuple[str, str, str]]:
    """Every name a room's stub offers: (room, name, module it comes from, or empty for a sub-room)."""
    found = []
    for stub in STUBS:
        room = ".".join(("separatrix", *stub.parent.relative_to(ROOT).parts))
        modules, names = offered(stub)
        found += [(room, name, "") for name in sorted(modules)]
        found += [(room, name, module) for module, group in names.items() for name in group]
    return found


NAMES = public_names()


@pytest.fixture(scope="module", autouse=True)
def everything_imported() -> None:
    """Import every module first: a file named like a public function must not hide the function."""
    for info in pkgutil.walk_packages(separatrix.__path__, "separatrix."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)


def fault(room: str, name: str, module: str) -> str:
    """What is wrong with a public name, or nothing."""
    value = getattr(importlib.import_module(room), name)
    if not module:
        return "" if isinstance(value, ModuleType) else "is no sub-room"
    if value is not getattr(importlib.import_module(f"{room}.{module}"), name):
        return f"is not what {module} defines"
    if isinstance(value, ModuleType):
        return "is a module"
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    if not inspect.getdoc(value):
        return "has no docstring"
    return f"has members without a docstring: {bare}" if (bare := undocumented_members(value)) else ""


@pytest.mark.parametrize("room", sorted({room for room, _, _ in NAMES}))
def test_public_names_resolve_to_what_their_modules_define_and_are_documented(room: str) -> None:
    listed = [(name, module) for where, name, module in NAMES if where == room]
    assert not {name: said for name, module in listed if (said := fault(room, name, module))}


def undocumented_members(value: Any) -> list[str]:
    """Public methods and properties of our own class without a docstring, inherited ones included."""
    if not inspect.isclass(value) or not value.__module__.startswith("separatrix"):
        return []
    own = [name for name, member in vars(value).items() if not name.startswith("_") and describes_itself(member)]
    return [name for name in own if not inspect.getdoc(getattr(value, name))]


def describes_itself(member: Any) -> bool:
    return inspect.isroutine(member) or isinstance(member, property | classmethod | staticmethod)


def test_no_name_is_listed_twice_in_a_room() -> None:
    listed = [(room, name) for room, name, _ in NAMES]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_unknown_name_of_a_room_is_an_attribute_error(stub: Path) -> None:
    room = importlib.import_module(".".join(("separatrix", *stub.parent.relative_to(ROOT).parts)))
    with pytest.raises(AttributeError):
        _ = room.no_such_name
