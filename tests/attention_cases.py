"""Random weights and known cases that several tests share."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.dynamics import AttentionFlow

CLUSTERING_COUPLING = torch.tensor(
    [[2.177, -0.374, -1.305], [-2.376, 1.363, 0.712], [2.747, -0.034, 1.789]], dtype=torch.float64
)
CLUSTERING_VALUE = torch.tensor(
    [[1.019, 0.896, -0.307], [0.896, 0.167, 0.557], [-0.307, 0.557, -0.017]], dtype=torch.float64
)
CLUSTERING_POINT = torch.tensor(
    [[0.84318379, 0.53723214, 0.02056021], [-0.71952196, -0.65198950, -0.23916071]], dtype=torch.float64
)


def clustering_flow() -> AttentionFlow:
    """A flow with a stable clustering of 8 and 2 tokens that is not antipodal."""
    return AttentionFlow.from_coupling(CLUSTERING_COUPLING, CLUSTERING_VALUE)


def gaussian_flow(dim: int, generator: torch.Generator, *instances: int) -> AttentionFlow:
    """Unit-variance query and key and a symmetric Gaussian value matrix with a positive eigenvalue."""
    query, key, g = (torch.randn(*instances, dim, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    value = (g + g.mT) / 2
    top = torch.linalg.eigvalsh(value)[..., -1, None, None]
    return AttentionFlow(query=query, key=key, value=torch.where(top > 0, value, -value))


def general_matrix(dim: int, generator: torch.Generator) -> Tensor:
    return torch.randn(dim, dim, generator=generator, dtype=torch.float64)
