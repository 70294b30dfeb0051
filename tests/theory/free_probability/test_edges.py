from __future__ import annotations

import math

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput
from separatrix.matrices.ensembles import GOE, Antisymmetric, Elliptic, SymmetricOrthogonal
from separatrix.theory.free_probability import (
    Discrete,
    Semicircle,
    TwoPoint,
    UniformLaw,
    elliptic_radius,
    product_edge,
    slopes_edge,
)

UNIFORM = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
EQUAL = torch.full_like(UNIFORM, 1e-3)


def radius(slopes: torch.Tensor, weights: torch.Tensor, weight_var: float, tau: float) -> float:
    return float(elliptic_radius(slopes, weights, torch.tensor(weight_var, dtype=torch.float64), tau))


@checks(elliptic_radius, by="limits with a closed form")
@pytest.mark.parametrize("tau", [-1.0, -0.3, 0.0, 0.3, 1.0])
def test_radius_of_constant_and_of_zero_one_slopes(tau: float) -> None:
    one = torch.ones(1, dtype=torch.float64)
    assert radius(one, one, 0.49, tau) == pytest.approx(0.7 * (1 + abs(tau)))
    slopes, weights = torch.tensor([0.0, 1.0]).double(), torch.tensor([0.4, 0.6]).double()
    assert radius(slopes, weights, 0.49, tau) == pytest.approx(0.7 * math.sqrt(0.6) * (1 + abs(tau)))


@pytest.mark.sampled(2)
@checks(elliptic_radius, by="eigenvalues of sampled matrices")
@pytest.mark.parametrize("ensemble", [Elliptic(0.5), Elliptic(-0.5), GOE(), Antisymmetric()], ids=lambda e: repr(e))
def test_radius_agrees_with_sampled_matrices(ensemble: Elliptic, generator: torch.Generator) -> None:
    width = 400
    slopes = (torch.arange(width, dtype=torch.float64) + 0.5) / width
    tau = getattr(ensemble, "tau", 1.0)
    matrices = ensemble.sample(width, 1.0, generator=generator, batch=(3,))
    measured = torch.linalg.eigvals(slopes[:, None] * matrices).abs().amax(-1).mean()
    predicted = radius(slopes, torch.full_like(slopes, 1 / width), 1.0, abs(tau))
    assert float(measured) == pytest.approx(predicted, rel=0.05)  # edge shifts by N^(-2/3) to N^(-1/2)


@checks(product_edge, by="the scalar equation of the edge, and a known product")
def test_three_routes_to_the_edge_agree() -> None:
    """Scalar equation, minimum along the real axis, and the same for a law with closed transforms."""
    assert radius(UNIFORM, EQUAL, 1.0, 1.0) == pytest.approx(1.2066, abs=2e-4)
    assert float(slopes_edge(UNIFORM, EQUAL, Semicircle(1.0))) == pytest.approx(radius(UNIFORM, EQUAL, 1.0, 1.0))
    assert product_edge(UniformLaw(0.0, 1.0), Semicircle(1.0)) == pytest.approx(1.2066, abs=2e-4)


@checks(slopes_edge, by="a sampled matrix")
def test_edge_with_reflections_agrees_with_a_sampled_matrix(generator: torch.Generator) -> None:
    width = 500
    slopes = (torch.arange(width, dtype=torch.float64) + 0.5) / width
    matrix = SymmetricOrthogonal().sample(width, 1.0, generator=generator)
    values = torch.linalg.eigvalsh(slopes.sqrt()[:, None] * matrix * slopes.sqrt())
    predicted = float(slopes_edge(slopes, torch.full_like(slopes, 1 / width), TwoPoint(1.0)))
    assert float(values.max()) == pytest.approx(predicted, abs=0.02)
    sampled = slopes_edge(slopes, torch.full_like(slopes, 1 / width), Discrete([-1.0, 1.0]))
    assert float(sampled) == pytest.approx(predicted, rel=1e-9)


def test_edges_are_batched_and_scale_with_the_slopes() -> None:
    both = slopes_edge(torch.stack([UNIFORM, UNIFORM / 2]), torch.stack([EQUAL, EQUAL]), TwoPoint(1.0))
    assert float(both[1]) == pytest.approx(float(both[0]) / 2)
    two = elliptic_radius(
        torch.stack([UNIFORM, UNIFORM]), torch.stack([EQUAL, EQUAL]), torch.tensor([1.0, 4.0]).double(), 0.5
    )
    assert float(two[1]) == pytest.approx(2 * float(two[0]))


def test_dead_units_have_radius_zero() -> None:
    zeros = torch.zeros(3, dtype=torch.float64)
    assert radius(zeros, torch.full_like(zeros, 1 / 3), 1.0, 1.0) == 0
    assert float(slopes_edge(zeros, torch.full_like(zeros, 1 / 3), Semicircle(1.0))) == 0


def test_left_edge_of_an_asymmetric_law() -> None:
    law = Discrete([-2.0, 1.0], [0.3, 0.7])
    assert product_edge(Discrete([1.0]), law, left=True) == pytest.approx(-2.0)
    assert product_edge(Discrete([1.0]), law) == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="positive must be a law"):
        product_edge(Semicircle(1.0), law)
