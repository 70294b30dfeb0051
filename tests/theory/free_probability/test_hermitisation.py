from __future__ import annotations

import math

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput
from separatrix.matrices.ensembles import GOE, BiInvariant, DenseBlock, Elliptic, Gaussian, RectangularGaussian
from separatrix.theory.free_probability import (
    Discrete,
    annulus,
    elliptic_boundary,
    elliptic_radius,
    hermitised_resolvent,
)

SLOPES = Discrete((torch.arange(100, dtype=torch.float64) + 0.5) / 100)
ANGLES = torch.linspace(0, 2 * math.pi, 9, dtype=torch.float64)[:-1]


@checks(annulus, by="eigenvalues of a sampled matrix")
def test_bi_invariant_spectrum_fills_an_annulus(generator: torch.Generator) -> None:
    matrix = BiInvariant([0.5, 1.0]).sample(400, 1.0, generator=generator)
    squares = torch.linalg.svdvals(matrix).square()
    inner, outer = annulus(squares.mean(), (1 / squares).mean())
    moduli = torch.linalg.eigvals(matrix).abs()
    assert float(moduli.max()) == pytest.approx(float(outer), abs=0.04)
    assert float(moduli.min()) == pytest.approx(float(inner), abs=0.04)


def test_independent_entries_fill_a_disc(generator: torch.Generator) -> None:
    assert float(torch.linalg.eigvals(Gaussian().sample(400, 1.0, generator=generator)).abs().min()) < 0.1


@checks(elliptic_boundary, by="ellipse in closed form, and the 2 x 2 equation")
@pytest.mark.parametrize("tau", [0.5, -0.5, 1.0, 0.0])
def test_boundary_of_the_elliptic_law_is_an_ellipse(tau: float) -> None:
    curve = elliptic_boundary(Discrete([1.0]), 1.0, tau, ANGLES)
    if abs(tau) < 1:
        ratio = (curve.real / (1 + tau)).square() + (curve.imag / (1 - tau)).square()
        torch.testing.assert_close(ratio, torch.ones_like(ratio))
    else:
        assert float(curve.imag.abs().max()) < 1e-6
        assert float(curve.real.max()) == pytest.approx(2)


@checks(elliptic_boundary, by="density of the Hermitised matrix")
def test_density_at_zero_vanishes_outside_the_boundary_only() -> None:
    curve = elliptic_boundary(SLOPES, 1.0, 0.5, ANGLES)
    inside = hermitised_resolvent(SLOPES, 1.0, 0.5, 0.9 * curve, eta=1e-4)[..., 0, 0].imag
    outside = hermitised_resolvent(SLOPES, 1.0, 0.5, 1.1 * curve, eta=1e-4)[..., 0, 0].imag
    assert bool((inside < -0.1).all())
    assert bool((outside.abs() < 0.02).all())
    top = torch.tensor(1.0, dtype=torch.float64)
    assert float(curve[0].real) == pytest.approx(float(elliptic_radius(SLOPES.values, SLOPES.weights, top, 0.5)))


@checks(hermitised_resolvent, by="a sampled matrix")
def test_resolvent_agrees_with_a_sampled_matrix(generator: torch.Generator) -> None:
    width, point, eta = 400, 0.4 + 0.1j, 0.05
    d = SLOPES.values.repeat_interleave(4).sqrt()
    matrix = d[:, None] * Elliptic(0.5).sample(width, 1.0, generator=generator) * d
    block = torch.zeros(2 * width, 2 * width, dtype=torch.complex128)
    block[:width, width:] = point * torch.eye(width) - matrix
    block[width:, :width] = block[:width, width:].mH
    inverse = torch.linalg.inv(block + 1j * eta * torch.eye(2 * width))
    predicted = hermitised_resolvent(SLOPES, 1.0, 0.5, torch.tensor(point, dtype=torch.complex128), eta=eta)
    measured = torch.stack([inverse[:width, :width].trace(), inverse[width:, :width].trace()]) / width
    # fluctuations are of order 1 / (width * eta) = 0.05
    torch.testing.assert_close(predicted[:, 0], measured, atol=0.05, rtol=0)


@pytest.mark.parametrize("block", [DenseBlock(GOE()), DenseBlock(RectangularGaussian(), hidden=1200)])
def test_a_dense_block_has_no_symmetric_matrix_effect(block: DenseBlock, generator: torch.Generator) -> None:
    """Two matrices with a diagonal between are R-diagonal, symmetric or not: radius V sqrt(E d^2)."""
    up, down = block.sample(300, 0.8, generator=generator)
    slopes = torch.rand(up.shape[0], generator=generator, dtype=torch.float64)
    moduli = torch.linalg.eigvals(down @ (slopes[:, None] * up)).abs()
    radius = 0.8 * float(slopes.square().mean().sqrt())
    assert float((moduli > 1.1 * radius).double().mean()) < 0.02  # single values stray, by a fifth at this width
    assert float(moduli.max()) == pytest.approx(radius, rel=0.3)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="slopes must be at least 0"):
        elliptic_boundary(Discrete([-1.0]), 1.0, 0.5, ANGLES)
    with pytest.raises(InvalidInput, match="eta must be positive"):
        hermitised_resolvent(SLOPES, 1.0, 0.5, torch.zeros(1, dtype=torch.complex128), eta=0.0)
