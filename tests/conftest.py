from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
# The same examples on every run: a failure must be repeatable, and a pass must not depend on luck.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")
CHECKED: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "checks(names, by): this test checks closed forms by an independent route")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("checks"):
            CHECKED.update(mark.args[0])


@pytest.fixture
def checked() -> set[str]:
    """Names of all closed forms that some collected test checks."""
    return CHECKED


@pytest.fixture
def generator() -> torch.Generator:
    """A generator for this test alone."""
    return torch.Generator().manual_seed(20251)


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data, or a visible skip."""
    folder = os.environ.get("SEPARATRIX_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data: set SEPARATRIX_DATA to the folder that holds them")
    return Path(folder)
