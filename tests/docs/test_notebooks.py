"""Notebooks of the documentation, which are scripts with cells, run from top to bottom."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.py"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file: Path) -> None:
    assert "# %%" in file.read_text(encoding="utf-8")
    runpy.run_path(str(file))
