from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from separatrix.core.random import seed_global


@pytest.fixture(autouse=True)
def fixed_weights() -> Iterator[None]:
    """Constructors of torch layers draw from the global generator; give each test the same draws, and put it back."""
    with torch.random.fork_rng(devices=[]):
        seed_global(7)
        yield
