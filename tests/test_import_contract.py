from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import separatrix

PROJECT = Path(__file__).parent.parent
LINT = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contract, to be changed at will."""
    shutil.copytree(Path(separatrix.__file__).parent, tmp_path / "src" / "separatrix")
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "NO_COLOR": "1"}
    command = [sys.executable, "-c", LINT, "--no-cache"]
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return answer.returncode, answer.stdout + answer.stderr


def test_the_package_as_it_is_keeps_the_contract(copy: Path) -> None:
    status, text = lint(copy)
    assert status == 0, text


def test_theory_may_not_know_dynamics(copy: Path) -> None:
    (copy / "src/separatrix/theory/forbidden.py").write_text("import separatrix.dynamics\n")
    status, text = lint(copy)
    assert status != 0
    assert "rooms only look down BROKEN" in text
    assert "separatrix.theory.forbidden -> separatrix.dynamics" in text


@pytest.mark.parametrize(
    ("room", "upper", "lower"),
    [
        ("dynamics", "integration", "flows"),
        ("lab", "campaign", "store"),
        ("diagnose", "regime", "balance"),
        ("theory", "learning", "attention"),
        ("matrices", "memory", "spectra"),
        ("tasks", "text", "store"),
        ("nn", "equilibrium", "dropout"),
        ("report", "pages", "figures"),
        ("cli", "commands", "printing"),
    ],
)
def test_sub_rooms_look_down_too(copy: Path, room: str, upper: str, lower: str) -> None:
    inside = copy / "src/separatrix" / room / lower
    file = inside / "forbidden.py" if inside.is_dir() else inside.with_suffix(".py")
    with file.open("a") as text:
        text.write(f"\nimport separatrix.{room}.{upper}\n")
    status, said = lint(copy)
    assert status != 0
    assert f"separatrix.{room}.{lower}" in said
    assert "BROKEN" in said


def test_nothing_below_report_draws(copy: Path) -> None:
    (copy / "src/separatrix/dynamics/forbidden.py").write_text("import matplotlib\n")
    status, text = lint(copy)
    assert status != 0
    assert "no drawing below report BROKEN" in text


def test_new_room_must_be_given_its_place(copy: Path) -> None:
    (copy / "src/separatrix/attic").mkdir()
    (copy / "src/separatrix/attic/__init__.py").write_text('"""An unlisted room."""\n')
    status, text = lint(copy)
    assert status != 0
    assert "separatrix.attic" in text
