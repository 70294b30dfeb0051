from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.matrices import kreiss_constant, power_norms, spectral_distance
from separatrix.nn import BoundedSpectrum, bound_spectrum_
from separatrix.nn.orthogonal.bounded_spectrum import equal_diagonal_form


def gaussian(n: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(n, n, dtype=torch.float64, generator=spawn(seed, "spectrum", n)) / n**0.5


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("seed", range(6))
def test_any_matrix_within_the_radius_is_reached(n: int, seed: int) -> None:
    matrix = gaussian(n, seed)
    radius = 1.2 * float(torch.linalg.eigvals(matrix).abs().max()) + 1e-3
    bounded = BoundedSpectrum(n, radius).to(torch.float64)
    free = bounded.right_inverse(matrix)
    assert torch.allclose(bounded(*free), matrix, atol=1e-5)  # eigenvalues near the border move by 1e-6
    assert float(spectral_distance(torch.linalg.eigvals(bounded(*free)), bounded.eigenvalues(*free))) < 1e-6


def test_hard_matrices_are_reached() -> None:
    skewed = torch.tensor([[0.5, -2.0], [0.3, 0.5]])
    shift, mixed = torch.diag(torch.ones(3), 1), torch.diag(torch.tensor([1.0, -1.0, 0.5, -0.25]))
    for matrix in (torch.zeros(4, 4), torch.eye(5), shift, skewed, mixed, torch.ones(4, 4) / 4):
        wide = matrix.double()
        bounded = BoundedSpectrum(len(wide), 1.01).to(torch.float64)
        assert torch.allclose(bounded(*bounded.right_inverse(wide)), wide, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10**6), st.floats(0.1, 3.0), st.floats(0.01, 30.0))
def test_no_free_numbers_leave_the_radius(n: int, seed: int, radius: float, size: float) -> None:
    bounded = BoundedSpectrum(n, radius).to(torch.float64)
    free = bounded.right_inverse(gaussian(n, seed))
    moved = tuple(size * torch.randn(p.shape, dtype=p.dtype, generator=spawn(seed, i)) for i, p in enumerate(free))
    assert float(bounded.eigenvalues(*moved).abs().max()) <= radius * (1 + 1e-12)


def test_the_exact_eigenvalues_are_those_of_the_matrix() -> None:
    bounded = BoundedSpectrum(6, 0.8).to(torch.float64)
    free = bounded.right_inverse(gaussian(6))
    moved = tuple(p + 0.3 * torch.randn(p.shape, dtype=p.dtype, generator=spawn(i, "m")) for i, p in enumerate(free))
    assert float(spectral_distance(torch.linalg.eigvals(bounded(*moved)), bounded.eigenvalues(*moved))) < 1e-7


@pytest.mark.sampled(1, each="transient")
@pytest.mark.parametrize("transient", [1.0, 2.0, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_transients_stay_below_their_bound(transient: float, seed: int) -> None:
    bounded = BoundedSpectrum(6, 0.9, transient).to(torch.float64)
    free = bounded.right_inverse(gaussian(6, seed))
    moved = tuple(p + 5 * torch.randn(p.shape, dtype=p.dtype, generator=spawn(seed, i)) for i, p in enumerate(free))
    matrix = bounded(*moved).detach()
    assert float(power_norms(matrix, 200).max()) <= transient * (1 + 1e-9)
    assert float(kreiss_constant(matrix)) <= transient * (1 + 1e-6)


def test_the_bound_on_transients_is_used_not_idle() -> None:
    bounded = BoundedSpectrum(8, 0.9, 20.0).to(torch.float64)
    start = 0.89 * torch.eye(8, dtype=torch.float64)
    start[6:, :2] = 100.0  # from the first block to the last, where growth may be largest
    free = bounded.right_inverse(start)
    assert float(power_norms(bounded(*free).detach(), 100).max()) > 1.5


def test_training_in_a_plain_loop_stays_within_the_radius() -> None:
    layer = bound_spectrum_(nn.Linear(6, 6), 0.9)
    with torch.no_grad():
        for index, parameter in enumerate(layer.parameters()):
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=spawn(index, "start")))
    target = 3 * torch.randn(6, 6, generator=spawn(0, "target"))
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(200):
        optimiser.zero_grad()
        loss = (layer.weight - target).square().sum()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    bounded = layer.parametrizations["weight"][0]  # type: ignore[index, union-attr]
    free = [getattr(layer.parametrizations["weight"], f"original{k}") for k in range(5)]  # type: ignore[index]
    assert float(bounded.eigenvalues(*free).abs().max()) <= 0.9 * (1 + 1e-6)
    assert losses[-1] < 0.7 * losses[0]


def test_eigenvalues_outside_are_drawn_to_the_border() -> None:
    layer = nn.Linear(4, 4)
    with torch.no_grad():
        layer.weight.copy_(torch.diag(torch.tensor([3.0, -0.2, 0.1, 0.3])))
    found = torch.linalg.eigvals(bound_spectrum_(layer, 0.9).weight.detach()).real.sort().values
    assert float(found.abs().max()) <= 0.9 * (1 + 1e-5)


def test_the_form_is_similar_lower_triangular_and_has_equal_diagonals() -> None:
    for seed in range(10):
        matrix = gaussian(7, seed).numpy()
        form, basis = equal_diagonal_form(matrix)
        assert abs(basis @ form @ basis.T - matrix).max() < 1e-12
        blocks = form.reshape(7, 7)
        for row in range(0, 6, 2):
            assert abs(blocks[row, row] - blocks[row + 1, row + 1]) < 1e-12
            assert abs(blocks[row : row + 2, row + 2 :]).max() < 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0.0}, "radius must be a positive number"),
        ({"radius": 0.9, "transient": 0.5}, "transient must be at least 1"),
        ({"radius": 1.0, "transient": 2.0}, "radius below 1"),
    ],
)
def test_wrong_bounds_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        bound_spectrum_(nn.Linear(3, 3), **options)


def test_a_weight_that_is_not_square_is_refused() -> None:
    with pytest.raises(ShapeError, match="square matrix 'weight'"):
        inspect.unwrap(bound_spectrum_)(nn.Linear(3, 4), 0.9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_a_weight_as_it_is(dtype: torch.dtype) -> None:
    """The small number under a root used to be large in half precision: a weight of zeros became one of 0.18."""
    for matrix in (torch.zeros(2, 2), 0.5 * torch.eye(3), 0.5 * gaussian(4).float()):
        layer = nn.Linear(len(matrix), len(matrix), bias=False, dtype=dtype)
        with torch.no_grad():
            layer.weight.copy_(matrix)
        weight = bound_spectrum_(layer, 0.9).weight
        assert weight.dtype == dtype
        assert torch.allclose(weight.float(), matrix, atol=8 * torch.finfo(dtype).eps)
