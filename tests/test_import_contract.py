"""The import contract holds, and each of its clauses is broken by an import that it forbids.

One copy of the package takes all forbidden imports at once, and one run of the linter judges them: every clause is
reported by itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import separatrix

PROJECT = Path(__file__).parent.parent
PACKAGE = Path(separatrix.__file__).parent
LINT = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
SUB_ROOMS = [
    ("dynamics", "integration", "flows"),
    ("dynamics.solve", "convergence", "methods"),
    ("lab", "campaign", "store"),
    ("diagnose", "regime", "balance"),
    ("diagnose.detectors", "layers", "forward"),
    ("theory", "learning", "attention"),
    ("matrices", "memory", "spectra"),
    ("tasks", "text", "store"),
    ("nn", "equilibrium", "dropout"),
    ("report", "pages", "figures"),
    ("report.figures", "learning", "house"),
    ("cli", "commands", "printing"),
    ("cli.commands", "results", "experiments"),
]
"""Room, and two of its sub-rooms or files of which the second may not know the first."""


def lint(folder: Path) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1"}
    command = [sys.executable, "-c", LINT, "--no-cache"]
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return answer.returncode, answer.stdout + answer.stderr


def forbid(package: Path, room: str, upper: str, lower: str) -> None:
    """Let the lower of two sub-rooms import the upper one."""
    inside = package / room.replace(".", "/") / lower
    file = inside / "forbidden.py" if inside.is_dir() else inside.with_suffix(".py")
    with file.open("a") as text:
        text.write(f"\nimport separatrix.{room}.{upper}\n")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """What the linter says of a copy that breaks every clause, in one line."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "src" / "separatrix"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    (package / "theory/forbidden.py").write_text("import separatrix.dynamics\n")
    (package / "dynamics/forbidden.py").write_text("import matplotlib\n")
    (package / "diagnose/forbidden.py").write_text("import separatrix.nn\n")
    (package / "diagnose/attention/forbidden.py").write_text("import separatrix.diagnose.regime\n")
    (package / "attic").mkdir()
    (package / "attic/__init__.py").write_text('"""An unlisted room."""\n')
    for words in SUB_ROOMS:
        forbid(package, *words)
    status, text = lint(folder)
    return status, " ".join(text.split())


def test_the_package_as_it_is_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "src").symlink_to(PACKAGE.parent)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    status, text = lint(tmp_path)
    assert status == 0, text


def test_every_clause_can_be_broken(broken: tuple[int, str]) -> None:
    status, text = broken
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert status != 0
    assert [clause["name"] for clause in contracts if f"{clause['name']} BROKEN" not in text] == []


def test_theory_may_not_know_dynamics(broken: tuple[int, str]) -> None:
    assert "separatrix.theory.forbidden -> separatrix.dynamics" in broken[1]


@pytest.mark.parametrize(("room", "upper", "lower"), SUB_ROOMS)
def test_sub_rooms_look_down_too(broken: tuple[int, str], room: str, upper: str, lower: str) -> None:
    inner, outer = (re.escape(f"separatrix.{room}.{name}") for name in (lower, upper))
    assert re.search(rf"{inner}(\.forbidden)? -> {outer}\b", broken[1]), broken[1]


def test_nothing_below_report_draws(broken: tuple[int, str]) -> None:
    assert "separatrix.dynamics.forbidden -> matplotlib" in broken[1]


def test_new_room_must_be_given_its_place(broken: tuple[int, str]) -> None:
    assert "separatrix.attic" in broken[1]
