from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.matrices import (
    commutator_norm,
    delay_line,
    henrici,
    henrici_bound,
    numerical_abscissa,
    numerical_radius,
    power_norms,
)


def grcar(size: int) -> torch.Tensor:
    ones = torch.ones(size, size, dtype=torch.float64)
    return ones.triu().tril(3) - torch.diag(torch.ones(size - 1, dtype=torch.float64), -1)


def random_matrices(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def test_grcar_matrix_has_its_known_measures() -> None:
    matrix = grcar(20)
    assert henrici(matrix).item() == pytest.approx(4.628315, abs=1e-6)
    assert henrici(matrix, relative=True).item() == pytest.approx(0.479934, abs=1e-6)
    assert numerical_abscissa(matrix).item() == pytest.approx(2.873589, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10_000))
def test_henrici_is_what_eigenvalues_leave_of_the_norm(size: int, seed: int) -> None:
    matrix = random_matrices(seed, size, size)
    left = (matrix.square().sum() - torch.linalg.eigvals(matrix).abs().square().sum()).clamp_min(0)
    # the radicand of the reference cancels to about 1e-13
    assert henrici(matrix).item() ** 2 == pytest.approx(left.item(), abs=1e-10)
    assert henrici(matrix) <= henrici_bound(matrix) + 1e-9
    assert 0 <= henrici(matrix, relative=True).item() <= 1


def test_normal_matrices_depart_by_nothing_but_rounding() -> None:
    orthogonal = torch.linalg.qr(random_matrices(0, 60, 60)).Q
    symmetric = random_matrices(1, 60, 60)
    matrices = torch.stack([orthogonal, symmetric + symmetric.mT])
    assert henrici(matrices).max() < 1e-11
    assert commutator_norm(matrices).max() < 1e-10


def test_measures_of_a_zero_matrix_are_zero() -> None:
    zero = torch.zeros(3, 3, dtype=torch.float64)
    assert henrici(zero, relative=True).item() == 0
    assert numerical_radius(zero).item() == 0


def test_batches_give_what_single_calls_give() -> None:
    matrices = random_matrices(2, 2, 3, 5, 5)
    for measure in (henrici, henrici_bound, commutator_norm, numerical_abscissa, numerical_radius):
        found = measure(matrices)
        assert found.shape == (2, 3)
        assert found[1, 2].item() == pytest.approx(measure(matrices[1, 2]).item(), abs=1e-12)


def test_numerical_radius_of_a_delay_line_is_known() -> None:
    assert numerical_radius(delay_line(20, 1.05)).item() == pytest.approx(1.05 * math.cos(math.pi / 21), abs=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_numerical_radius_lies_between_half_the_norm_and_the_norm(seed: int) -> None:
    matrix = random_matrices(seed, 6, 6)
    radius, norm = numerical_radius(matrix).item(), torch.linalg.matrix_norm(matrix, 2).item()
    assert norm / 2 - 1e-9 <= radius <= norm + 1e-9
    assert radius >= torch.linalg.eigvals(matrix).abs().max().item() - 1e-9


def test_numerical_radius_is_the_largest_quadratic_form() -> None:
    matrix = random_matrices(3, 2, 2)
    angle, phase = torch.meshgrid(*(torch.linspace(0, 2 * math.pi, 801, dtype=torch.float64),) * 2, indexing="ij")
    cos, sin = torch.cos(angle).to(torch.complex128), torch.polar(torch.sin(angle).abs(), phase)
    vector = torch.stack([cos, sin], dim=-1)
    brute = ((vector.conj() @ matrix.to(torch.complex128)) * vector).sum(-1).abs().max().item()
    assert numerical_radius(matrix).item() == pytest.approx(brute, rel=1e-4)  # the grid is that fine


def test_power_norms_start_at_one_and_follow_the_powers() -> None:
    line = delay_line(20, 1.05)
    norms = power_norms(line, 21)
    assert norms[0].item() == 1
    assert norms[:20].tolist() == pytest.approx([1.05**k for k in range(20)])
    assert norms[20].item() == 0
    assert norms.max().item() == pytest.approx(2.5270, abs=1e-4)


def test_bad_counts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="n_steps must be an integer of at least 1; got 0"):
        power_norms(torch.eye(2), 0)
    with pytest.raises(InvalidInput, match="n_angles must be an integer of at least 4"):
        numerical_radius(torch.eye(2), n_angles=3)
