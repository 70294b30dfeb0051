from __future__ import annotations

import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput
from separatrix.dynamics import non_normality, spectral_abscissa, spectral_norm, spectral_radius
from separatrix.matrices import GOE, Gaussian, Haar


def linear(matrix: Tensor) -> object:
    return lambda z: z @ matrix.mT


def point(dim: int, rows: int = 2) -> Tensor:
    return torch.zeros(rows, dim, dtype=torch.float64)


def test_radius_of_a_scaled_haar_matrix_is_its_scale(generator: torch.Generator) -> None:
    matrix = Haar().sample(256, 0.81, generator=generator)
    radius = spectral_radius(linear(matrix), point(256, rows=3))  # type: ignore[arg-type]
    assert torch.allclose(radius, torch.full((3,), 0.9, dtype=torch.float64), atol=5e-3)


@pytest.mark.parametrize("family", [Gaussian(), GOE()])
def test_radius_of_random_matrices_agrees_with_dense_eigenvalues(family: object, generator: torch.Generator) -> None:
    matrix = family.sample(200, 0.5, generator=generator)  # type: ignore[attr-defined]
    exact = torch.linalg.eigvals(matrix).abs().max()
    radius = spectral_radius(linear(matrix), point(200))  # type: ignore[arg-type]
    assert torch.allclose(radius, exact.expand(2), rtol=2e-2)  # two percent: a Krylov space of 40 in dimension 200


def test_small_jacobians_are_solved_exactly(generator: torch.Generator) -> None:
    matrices = torch.randn(5, 9, 9, generator=generator, dtype=torch.float64)
    z = torch.randn(5, 9, generator=generator, dtype=torch.float64)

    def cell(z: Tensor) -> Tensor:
        return torch.tanh((matrices @ z.unsqueeze(-1)).squeeze(-1))

    slope = 1 - cell(z).square()
    jacobians = slope.unsqueeze(-1) * matrices
    eigenvalues = torch.linalg.eigvals(jacobians)
    singular = torch.linalg.svdvals(jacobians)[:, 0]
    assert torch.allclose(spectral_radius(cell, z), eigenvalues.abs().amax(-1), rtol=1e-8)
    assert torch.allclose(spectral_abscissa(cell, z), eigenvalues.real.amax(-1), rtol=1e-8)
    assert torch.allclose(spectral_norm(cell, z, power=300), singular, rtol=1e-3)
    assert torch.allclose(non_normality(cell, z), singular / eigenvalues.abs().amax(-1), rtol=1e-2)


def test_non_normality_is_one_for_orthogonal_and_large_for_a_delay_line(generator: torch.Generator) -> None:
    orthogonal = Haar().sample(30, 0.49, generator=generator)
    assert torch.allclose(non_normality(linear(orthogonal), point(30)), torch.ones(2, dtype=torch.float64), rtol=1e-6)  # type: ignore[arg-type]
    delay = torch.diag(torch.ones(29, dtype=torch.float64), 1) + 0.1 * torch.eye(30, dtype=torch.float64)
    assert bool((non_normality(linear(delay), point(30)) > 2).all())  # type: ignore[arg-type]


def test_abscissa_separates_a_period_two_instability_from_a_loss_of_the_equilibrium() -> None:
    matrix = torch.diag(torch.tensor([-1.4, 0.2], dtype=torch.float64))
    assert torch.allclose(spectral_radius(linear(matrix), point(2)), torch.tensor(1.4, dtype=torch.float64))  # type: ignore[arg-type]
    assert torch.allclose(spectral_abscissa(linear(matrix), point(2)), torch.tensor(0.2, dtype=torch.float64))  # type: ignore[arg-type]


def test_a_nan_in_one_sample_leaves_the_others_right(generator: torch.Generator) -> None:
    matrix = Haar().sample(12, 0.25, generator=generator)

    def poisoned(z: Tensor) -> Tensor:
        image = z @ matrix.mT
        return torch.cat([image[:1] * torch.nan, image[1:]])

    radius = spectral_radius(poisoned, point(12, rows=3))
    assert bool(radius[0].isnan())
    assert torch.allclose(radius[1:], torch.full((2,), 0.5, dtype=torch.float64))


def test_the_same_call_gives_the_same_number_and_the_global_stream_is_untouched(generator: torch.Generator) -> None:
    matrix = Gaussian().sample(80, 0.5, generator=generator)
    state = torch.get_rng_state()
    first, second = (spectral_radius(linear(matrix), point(80)) for _ in range(2))  # type: ignore[arg-type]
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_leading_axes_are_kept_and_bad_counts_refused() -> None:
    z = torch.zeros(2, 3, 4, dtype=torch.float64)
    assert spectral_norm(torch.tanh, z).shape == (2, 3)
    with pytest.raises(InvalidInput, match="power must be an integer of at least 2"):
        spectral_radius(torch.tanh, z, power=1)
    with pytest.raises(InvalidInput, match="krylov must be an integer of at least 1"):
        spectral_abscissa(torch.tanh, z, krylov=0)
