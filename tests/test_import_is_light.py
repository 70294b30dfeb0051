from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "matplotlib", "scipy", "pandas", "fastapi", "pydantic")


def loaded_by(code: str) -> list[str]:
    """Heavy packages that a fresh interpreter has loaded after running the code."""
    probe = f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return answer.stdout.split()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import separatrix; separatrix.__version__; dir(separatrix)") == []


def test_every_room_can_be_named_without_loading_torch_or_matplotlib() -> None:
    rooms = "core, sources, matrices, theory, dynamics, lab, tasks, report"
    assert not {"torch", "matplotlib"} & set(loaded_by(f"from separatrix import {rooms}"))


@pytest.mark.parametrize(
    "module", ["separatrix.lab.experiment.definition", "separatrix.tasks.store.catalogue", "separatrix.sources"]
)
def test_what_the_command_line_lists_needs_no_torch(module: str) -> None:
    assert not {"torch", "matplotlib"} & set(loaded_by(f"import {module}"))


def test_listing_experiments_needs_no_torch() -> None:
    code = "from separatrix import experiments; experiments.catalogue()"
    assert not {"torch", "matplotlib"} & set(loaded_by(code))
