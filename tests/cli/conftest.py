from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from backwards_engine import compute_here
from command_line import Answer, run_here


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """The command line in this process: words in, exit code and both streams out."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main() replaces it
    monkeypatch.setenv("COLUMNS", "1000")
    return lambda *words: run_here(capsys, monkeypatch, *map(str, words))


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are computed in this process: for tests of what a command makes of them."""
    compute_here(monkeypatch)
