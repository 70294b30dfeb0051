"""Which samples of the data to look at."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.core.random import spawn


def sample_index(n_data: int, max_samples: int) -> Tensor:
    """All samples, or a random choice of a fixed stream, in order: data are often sorted by class."""
    if n_data <= max_samples:
        return torch.arange(n_data)
    chosen = torch.randperm(n_data, generator=spawn(0, "diagnose", "samples"))[:max_samples]
    return chosen.sort().values
