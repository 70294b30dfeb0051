from __future__ import annotations

import pytest
import torch

from attention_cases import CLUSTERING_POINT, clustering_flow
from separatrix.core import InvalidInput, Outcome
from separatrix.dynamics import normalise, polish, random_tokens


def test_newton_returns_to_the_equilibrium_from_nearby(generator: torch.Generator) -> None:
    sizes = torch.tensor([8.0, 2.0]).double()
    noise = 0.01 * torch.randn(5, 2, 3, generator=generator, dtype=torch.float64)
    polished = polish(clustering_flow(), normalise(CLUSTERING_POINT + noise), sizes)
    assert bool(polished.found.all())
    assert polished.residual.max() < 1e-13 * 2
    torch.testing.assert_close(polished.point, CLUSTERING_POINT.expand(5, 2, 3), rtol=0, atol=2e-8)


def test_states_without_an_equilibrium_nearby_hold_nan(generator: torch.Generator) -> None:
    polished = polish(clustering_flow(), random_tokens(6, 3, 4, generator=generator))
    failed = polished.outcome != Outcome.CONVERGED
    assert bool(failed.any())
    assert bool(polished.point[failed].isnan().all())


def test_single_precision_is_refused() -> None:
    with pytest.raises(InvalidInput, match="polish needs float64 states"):
        polish(clustering_flow(), torch.eye(3, dtype=torch.float32))
