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


@pytest.mark.parametrize(("room", "name", "module"), NAMES, ids=[f"{room}.{name}" for room, name, _ in NAMES])
def test_public_name_resolves_to_what_its_module_defines_and_is_documented(room: str, name: str, module: str) -> None:
    value = getattr(importlib.import_module(room), name)
    if not module:
        assert isinstance(value, ModuleType)
        return
    assert value is getattr(importlib.import_module(f"{room}.{module}"), name)
    assert not isinstance(value, ModuleType)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value), f"{room}.{name} has no docstring"
        assert undocumented_members(value) == []


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
