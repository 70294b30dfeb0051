from __future__ import annotations

import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput
from separatrix.dynamics import NewtonKrylov, Picard, count_equilibria, find_period_two


def bistable(z: Tensor) -> Tensor:
    """Equilibria at 0 (repelling) and near +-0.96 in each coordinate."""
    return torch.tanh(2 * z)


def test_multi_start_finds_every_attractor_of_a_product_of_bistable_maps(generator: torch.Generator) -> None:
    starts = torch.randn(200, 3, generator=generator, dtype=torch.float64)
    count = count_equilibria(bistable, Picard(tol=1e-10, max_steps=500), starts)
    assert count.n_equilibria == 8  # a sign for each coordinate
    assert torch.equal(torch.sign(count.points[count.labels]), torch.sign(starts))
    assert float(count.fractions.sum()) == pytest.approx(1)
    assert count.n_failed == 0


def test_newton_also_counts_the_repelling_equilibrium(generator: torch.Generator) -> None:
    starts = torch.randn(100, 1, generator=generator, dtype=torch.float64)
    count = count_equilibria(bistable, NewtonKrylov(tol=1e-10, stop="abs"), starts)
    assert count.n_equilibria == 3


def test_a_contraction_has_one_equilibrium_whatever_the_starts(generator: torch.Generator) -> None:
    starts = 10 * torch.randn(50, 4, generator=generator, dtype=torch.float64)
    count = count_equilibria(lambda z: 0.5 * torch.tanh(z) + 1, Picard(tol=1e-10), starts)
    assert count.n_equilibria == 1
    assert count.fractions.tolist() == [1.0]


def test_failed_starts_are_counted_apart() -> None:
    starts = torch.tensor([[0.5], [40.0]], dtype=torch.float64)
    count = count_equilibria(lambda z: torch.where(z > 10, 2 * z, 0.5 * z), Picard(stop="abs", tol=1e-10), starts)
    assert count.labels.tolist() == [0, -1]
    assert count.n_failed == 1
    with pytest.raises(InvalidInput, match="radius must be a positive number"):
        count_equilibria(torch.tanh, Picard(), starts, radius=0.0)


def test_period_two_is_told_from_rest_and_from_wandering() -> None:
    slopes = torch.tensor([-1.5, -0.5, 0.9], dtype=torch.float64)
    z0 = torch.full((3, 1), 0.3, dtype=torch.float64)
    found = find_period_two(lambda z: torch.tanh(slopes[:, None] * z), z0, steps=400)
    assert found.alternates.tolist() == [True, False, False]
    wandering = find_period_two(lambda z: 3.9 * z * (1 - z), torch.full((1, 1), 0.3, dtype=torch.float64))
    assert wandering.alternates.tolist() == [False]  # chaotic logistic map
