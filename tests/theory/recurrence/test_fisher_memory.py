from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.matrices import delay_line, feedback_line, fisher_memory_curve, fisher_memory_matrix
from separatrix.theory import (
    amplification_bound,
    delay_line_memory,
    delay_line_total,
    delay_line_total_leading,
    feedback_line_radius,
    memory_ceiling,
    normal_memory,
    normal_memory_matrix,
    normal_memory_total,
    sharp_triangular_memory_bound,
    triangular_memory_bound,
)


def number(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def first(size: int) -> torch.Tensor:
    return torch.eye(size, dtype=torch.float64)[0]


def random_triangular(seed: int, size: int, count: int) -> torch.Tensor:
    generator = seeded(seed)
    below = torch.randn(count, size, size, generator=generator, dtype=torch.float64).tril(-2)
    scale = torch.rand(count, 1, 1, generator=generator, dtype=torch.float64)
    alpha = 0.2 + 2 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return below * scale + torch.diag_embed(alpha.sqrt().expand(-1, size - 1), -1)


@checks(delay_line_memory, delay_line_total, by="covariance of the noise, solved numerically")
@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.0 + 1e-9, 1.1, 4.0])
def test_delay_line_formula_is_the_computed_memory(alpha: float) -> None:
    memory = fisher_memory_curve(delay_line(10, math.sqrt(alpha)), first(10), 12, 2.0)
    curve = delay_line_memory(number(alpha), torch.arange(12), 10, 2.0)
    assert torch.allclose(curve, memory.curve, rtol=1e-12, atol=1e-15)
    assert delay_line_total(number(alpha), 10, 2.0).item() == pytest.approx(memory.total.item(), rel=1e-12)


@checks(delay_line_memory, by="the fraction in exact integers")
def test_delay_line_formula_survives_huge_powers() -> None:
    value = delay_line_memory(number(9.0), torch.tensor(5000), 10_000).item()
    assert value == pytest.approx(float(Fraction(9**5000 * 8, 9**5001 - 1)), rel=1e-14)
    assert delay_line_memory(number(0.01), torch.tensor(400), 500).item() == 0  # 1e-800 is below every double


@checks(delay_line_total_leading, by="exact finite sums")
@pytest.mark.parametrize(("alpha", "excess"), [(1.1, 2.812), (1.5, 1.29905), (2.0, 0.80335), (4.0, 0.31582)])
def test_leading_total_leaves_a_known_constant(alpha: float, excess: float) -> None:
    gap = delay_line_total(number(alpha), 60) - delay_line_total_leading(number(alpha), 60)
    assert gap.item() == pytest.approx(excess, abs=5e-4)
    farther = delay_line_total(number(alpha), 4000) - delay_line_total_leading(number(alpha), 4000)
    assert farther.item() == pytest.approx(gap.item(), abs=4e-3)


@checks(normal_memory, normal_memory_total, by="covariance of the noise, solved numerically")
@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_normal_formula_is_the_computed_memory(size: int, seed: int) -> None:
    generator = seeded(seed)
    matrix = torch.randn(size, size, generator=generator, dtype=torch.float64)
    symmetric = matrix + matrix.mT
    symmetric = 0.9 * symmetric / torch.linalg.matrix_norm(symmetric, 2)
    source = torch.randn(size, generator=generator, dtype=torch.float64)
    source = source / torch.linalg.vector_norm(source)
    eigenvalues, vectors = torch.linalg.eigh(symmetric)
    memory = fisher_memory_curve(symmetric, source, 8, 0.5)
    curve = normal_memory(eigenvalues.abs(), (vectors.mT @ source) ** 2, torch.arange(8), 0.5)
    assert torch.allclose(curve, memory.curve, atol=1e-10)
    assert memory.total.item() == pytest.approx(normal_memory_total(0.5), rel=1e-8)


@checks(memory_ceiling, by="computed totals of random matrices")
def test_no_total_exceeds_the_ceiling_and_strong_lines_reach_it() -> None:
    strong = fisher_memory_curve(delay_line(6, 1e3), first(6), 1, 2.0).total.item()
    assert memory_ceiling(6, 2.0) * 0.99 < strong <= memory_ceiling(6, 2.0)


@checks(
    amplification_bound, triangular_memory_bound, sharp_triangular_memory_bound, by="computed memory, random search"
)
@pytest.mark.parametrize("size", [2, 4, 7])
def test_memory_lies_between_its_bounds(size: int) -> None:
    theta = random_triangular(size, size, 200)
    memory = fisher_memory_curve(theta, first(size), size, 2.0).curve
    low, sharp = triangular_memory_bound(theta, 2.0), sharp_triangular_memory_bound(theta, 2.0)
    signal = torch.stack([torch.linalg.matrix_power(theta, k)[..., 0] for k in range(size)], dim=-1)
    high = amplification_bound(signal.square().sum(-2), 2.0)
    slack = 1 + 1e-9  # rounding of a ratio
    assert bool((low <= sharp * slack).all())
    assert bool((sharp <= memory * slack).all())
    assert bool((memory <= high * slack).all())


@checks(triangular_memory_bound, sharp_triangular_memory_bound, amplification_bound, by="equality for a delay line")
def test_bounds_meet_for_a_delay_line() -> None:
    line, lags = delay_line(9, 1.2), torch.arange(9)
    curve = delay_line_memory(number(1.44), lags, 9, 3.0)
    assert torch.allclose(triangular_memory_bound(line, 3.0), curve, rtol=1e-12)
    assert torch.allclose(sharp_triangular_memory_bound(line, 3.0), curve, rtol=1e-12)
    assert torch.allclose(amplification_bound(number(1.44) ** lags, 3.0), curve, rtol=1e-12)


def test_a_delay_line_is_beaten_by_one_that_amplifies_more_at_first() -> None:
    line = delay_line(10, math.sqrt(1.1))
    front = line.clone()
    front[1, 0] *= 3
    curve = fisher_memory_curve(torch.stack([line, front]), first(10), 2).curve
    assert curve[:, 1].tolist() == pytest.approx([0.524, 0.908], abs=5e-4)


def test_bound_is_zero_once_the_signal_is_gone() -> None:
    assert amplification_bound(torch.tensor([1.0, 2.0, 0.0])).tolist() == pytest.approx([1, 2 / 3, 0])


@checks(feedback_line_radius, by="eigenvalues")
@pytest.mark.parametrize("size", [1, 2, 7, 20])
def test_feedback_line_radius_is_its_largest_eigenvalue(size: int) -> None:
    line = feedback_line(size, 1.3, 0.4)
    expected = torch.linalg.eigvals(line).abs().max().item()
    assert feedback_line_radius(number(1.3), number(0.4), size).item() == pytest.approx(expected, abs=1e-9)


def test_bounds_refuse_other_matrices() -> None:
    with pytest.raises(OutsideTheory, match="must be zero on and above the diagonal"):
        triangular_memory_bound(delay_line(4, 1.0, diagonal=0.2))
    uneven = delay_line(4, 1.0)
    uneven[1, 0] = 2
    with pytest.raises(OutsideTheory, match="one positive number along its sub-diagonal"):
        sharp_triangular_memory_bound(uneven)
    with pytest.raises(OutsideTheory, match="at least two units"):
        triangular_memory_bound(delay_line(1))


def test_formulas_refuse_arguments_outside_their_domain() -> None:
    with pytest.raises(OutsideTheory, match=r"alpha must be positive.*got -1\.0"):
        delay_line_memory(number(-1.0), torch.tensor(0), 3)
    with pytest.raises(OutsideTheory, match="alpha must exceed 1"):
        delay_line_total_leading(number(0.9), 3)
    with pytest.raises(OutsideTheory, match=r"must lie in \[0, 1\)"):
        normal_memory(torch.ones(2), torch.ones(2), torch.tensor(0))
    with pytest.raises(InvalidInput, match="lag must be at least 0; got -1"):
        delay_line_memory(number(1.0), torch.tensor(-1), 3)
    with pytest.raises(InvalidInput, match="amplification must not be negative"):
        amplification_bound(torch.tensor([1.0, -1.0]))


@checks(normal_memory_matrix, by="the matrix of the network itself")
def test_interference_of_a_normal_matrix_comes_from_its_phases() -> None:
    basis = torch.linalg.qr(torch.randn(6, 6, generator=seeded(60), dtype=torch.float64))[0]
    angles = torch.tensor([0.3, 1.1, 2.5], dtype=torch.float64)
    moduli = torch.tensor([0.9, 0.6, 0.8], dtype=torch.float64)
    cos, sin = moduli * torch.cos(angles), moduli * torch.sin(angles)
    blocks = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    matrix = basis @ torch.block_diag(*blocks.unbind(0)) @ basis.mT
    source = torch.nn.functional.normalize(torch.randn(6, generator=seeded(61), dtype=torch.float64), dim=0)
    eigenvalues, vectors = torch.linalg.eig(matrix)
    weights = (vectors.conj().mT @ source.to(vectors.dtype)).abs() ** 2
    found = normal_memory_matrix(eigenvalues, weights, 5, 0.5)
    assert float(found.imag.abs().max()) < 1e-12
    assert torch.allclose(found.real, fisher_memory_matrix(matrix, source, 5, 0.5).matrix, atol=1e-12)


def test_interference_of_an_unstable_normal_matrix_is_refused() -> None:
    with pytest.raises(OutsideTheory, match="below 1"):
        normal_memory_matrix(torch.ones(2, dtype=torch.complex128), torch.full((2,), 0.5, dtype=torch.float64), 3)
