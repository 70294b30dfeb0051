"""Notebooks run from the first cell to the last: with few updates every day, in full with the slow tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent.parent / "docs" / "notebooks"
SWITCH = "quick = False"


def run(path: Path, *, quick: bool) -> dict[str, Any]:
    source = path.read_text(encoding="utf-8")
    assert "# %%" in source
    assert source.count(SWITCH) <= 1
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source.replace(SWITCH, f"quick = {quick}"), str(path), "exec"), names)
    return names


@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - {"memory_of_three_bits"}))
def test_a_notebook_runs(name: str) -> None:
    assert run(FOLDER / f"{name}.py", quick=True)


def test_a_notebook_on_the_memory_of_a_network_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(FOLDER / "memory_of_three_bits.py", quick=True)
    assert names["losses"][-1] < names["losses"][0]
    assert names["ax"].get_xlabel().startswith("first component")
    assert "top exponent" in capsys.readouterr().out


@pytest.mark.slow
def test_in_full_it_finds_the_eight_memories() -> None:
    names = run(FOLDER / "memory_of_three_bits.py", quick=False)
    points = names["points"]
    stable = names["memories"][points.stable]
    assert names["losses"][-1] < 0.05
    assert len({tuple(row) for row in stable.int().tolist()}) == 8
    assert int((~points.stable).sum()) > 0
