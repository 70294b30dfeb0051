from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import Outcome
from separatrix.dynamics.solve.random_networks import network_equilibria, network_radius
from separatrix.matrices.ensembles import GOE, AbstractEnsemble, Antisymmetric, Elliptic, Gaussian, Haar


def test_half_steps_settle_where_plain_iteration_rotates_away() -> None:
    rotation = torch.tensor([[0.0, -1.3], [1.3, 0.0]], dtype=torch.float64)
    x = torch.ones(1, 2, dtype=torch.float64)
    plain = network_equilibria(rotation, lambda h: h, x, max_steps=200)
    half = network_equilibria(rotation, lambda h: h, x, damping=0.5, max_steps=400)
    assert plain.outcome.tolist() == [int(Outcome.DIVERGED)]
    assert half.outcome.tolist() == [int(Outcome.CONVERGED)]


def test_the_tolerance_is_on_the_root_mean_square(generator: torch.Generator) -> None:
    w = Haar().sample(50, 0.25, generator=generator)
    x = torch.randn(3, 50, generator=generator, dtype=torch.float64)
    solution = network_equilibria(w, lambda h: h, x, tol=1e-3)
    # the residual of the t-th evaluation is W^(t-1) x, of size 2^(1-t)
    expected = [math.ceil(math.log2(float(row.square().mean().sqrt()) / 1e-3)) + 1 for row in x]
    assert solution.steps.tolist() == expected


def test_batch_does_not_change_an_element(generator: torch.Generator) -> None:
    w = GOE().sample(40, 0.2, generator=generator)
    x = torch.randn(5, 40, generator=generator, dtype=torch.float64)
    together, alone = network_equilibria(w, torch.tanh, x), network_equilibria(w, torch.tanh, x[2:3])
    assert int(together.steps[2]) == int(alone.steps[0])
    torch.testing.assert_close(together.value[2], alone.value[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(together.value, torch.tanh(together.value @ w.mT) + x, atol=1e-6, rtol=0)


@pytest.mark.parametrize("ensemble", [Gaussian(), Haar(), GOE(), Antisymmetric(), Elliptic(-0.5)], ids=lambda e: e.name)
def test_outermost_eigenvalue_is_that_of_the_dense_matrix(
    ensemble: AbstractEnsemble, generator: torch.Generator
) -> None:
    width = 640  # above the width at which all eigenvalues are computed
    w = ensemble.sample(width, 1.0, generator=generator)
    slopes = (torch.rand(width, generator=generator, dtype=torch.float64) < 0.4).double()
    kept = slopes.bool()
    dense = torch.linalg.eigvals(w[kept][:, kept]).abs().max()  # zero rows leave the rest of the spectrum alone
    assert network_radius(w, slopes) == pytest.approx(float(dense), rel=2e-3)


@pytest.mark.slow
def test_outermost_eigenvalue_of_more_slopes_than_are_taken_densely(generator: torch.Generator) -> None:
    width = 1010
    w, slopes = Gaussian().sample(width, 1.0, generator=generator), torch.ones(width, dtype=torch.float64)
    assert network_radius(w, slopes) == pytest.approx(float(torch.linalg.eigvals(w).abs().max()), rel=2e-3)


def test_radius_of_a_circle_and_of_nothing(generator: torch.Generator) -> None:
    w = Haar().sample(610, 0.25, generator=generator)
    assert network_radius(w, torch.ones(610, dtype=torch.float64)) == pytest.approx(0.5)
    assert network_radius(w, torch.zeros(610, dtype=torch.float64)) == 0
    falling = -(torch.arange(610) % 2).double()  # none of them above zero
    for matrix in (w, w + w.mT):
        dense = torch.linalg.eigvals(falling[:, None] * matrix).abs().max()
        assert network_radius(matrix, falling) == pytest.approx(float(dense), rel=1e-9)
