"""One public name means one thing, and no name inside the package means another."""

from __future__ import annotations

import ast
import collections
import importlib
from pathlib import Path
from typing import Any

import separatrix
from test_public_surface import NAMES

ROOT = Path(separatrix.__file__).parent

ALIKE: dict[str, str] = {
    "census": "the command prints what the function returns",
    "classify": "the command prints what the function returns",
    "publish": "the command prints what the function returns",
    "verify": "the command prints what the function returns",
    "tangent_basis": "theory has its own, because it may not know dynamics",
}
"""Names that mean the same thing in two modules."""


def public_objects() -> dict[str, list[tuple[str, Any]]]:
    """By public name, the rooms that offer it and what it is there."""
    found: dict[str, list[tuple[str, Any]]] = collections.defaultdict(list)
    for room, name, module in NAMES:
        if module:
            found[name].append((room, getattr(importlib.import_module(room), name)))
    return found


def definitions() -> dict[str, set[str]]:
    """By name, the modules that define it at their top level; experiments stand each for itself."""
    found: dict[str, set[str]] = collections.defaultdict(set)
    for path in ROOT.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if module.startswith("experiments."):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in defined(node):
                found[name].add(module)
    return found


def defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_a_public_name_is_one_object_in_all_rooms() -> None:
    several = {
        name: [room for room, _ in places]
        for name, places in public_objects().items()
        if any(value is not places[0][1] for _, value in places)
    }
    assert not several, f"one name, several things: {several}"


def test_no_module_uses_a_public_name_for_something_else() -> None:
    modules = definitions()
    known = set(ALIKE)
    shadowed = {name: sorted(modules[name]) for name in public_objects() if len(modules[name]) > 1}
    assert not set(shadowed) - known, {name: shadowed[name] for name in sorted(set(shadowed) - known)}
    settled = set(ALIKE) - set(shadowed)
    assert not settled, f"no longer defined twice: {sorted(settled)}"


def test_check_is_the_one_call_and_the_room_keeps_its_name() -> None:
    from separatrix.diagnose import diagnose

    assert separatrix.check is diagnose
    assert isinstance(separatrix.diagnose, type(separatrix))
    assert not (ROOT / "check").exists()
    assert not (ROOT / "check.py").exists()
