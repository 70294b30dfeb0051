from __future__ import annotations

import inspect
import math

import flint
import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import seeded
from separatrix.core import ConvergenceWarning, InvalidInput, ShapeError
from separatrix.matrices import delay_line, feedback_line, fisher_memory_curve
from separatrix.sources.kerg2022.recurrence import TABLE5

EXACT_TABLE5 = (
    3.03270, 5.18738, 12.08727, 3.17577, 5.30143, 12.08654,
    11.93939, 16.29823, 20.83706, 12.08953, 16.39095, 20.88466,
)  # fmt: skip


def first(size: int) -> torch.Tensor:
    return torch.eye(size, dtype=torch.float64)[0]


def random_stable(seed: int, *shape: int, radius: float = 0.8) -> torch.Tensor:
    matrix = torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)
    return radius * matrix / torch.linalg.eigvals(matrix).abs().amax(-1)[..., None, None]


def random_source(seed: int, size: int) -> torch.Tensor:
    source = torch.randn(size, generator=seeded(seed), dtype=torch.float64)
    return source / torch.linalg.vector_norm(source)


def test_curve_is_the_curvature_of_the_log_likelihood() -> None:
    recurrent, source, noise_var, horizon = random_stable(0, 4, 4), random_source(1, 4), 0.7, 200
    powers = [torch.linalg.matrix_power(recurrent, k) for k in range(horizon)]
    covariance = noise_var * sum(power @ power.mT for power in powers)
    state = torch.zeros(4, dtype=torch.float64)

    def log_likelihood(signal: torch.Tensor) -> torch.Tensor:
        mean = sum(powers[k] @ source * signal[k] for k in range(5))
        return torch.distributions.MultivariateNormal(mean, covariance).log_prob(state)

    hessian = torch.autograd.functional.hessian(log_likelihood, torch.zeros(5, dtype=torch.float64))
    memory = fisher_memory_curve(recurrent, source, 5, noise_var)
    assert torch.allclose(memory.curve, -torch.diagonal(hessian), atol=1e-12)
    assert torch.allclose(memory.covariance, covariance, atol=1e-12)


def test_total_is_the_sum_of_a_long_curve() -> None:
    memory = fisher_memory_curve(random_stable(2, 5, 5), random_source(3, 5), 400)
    assert memory.total.item() == pytest.approx(memory.curve.sum().item(), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(0, 10_000), st.floats(0.1, 5.0))
def test_trace_of_the_spatial_matrix_is_units_over_noise(size: int, seed: int, noise_var: float) -> None:
    memory = fisher_memory_curve(random_stable(seed, size, size), random_source(seed, size), 3, noise_var)
    assert torch.trace(memory.spatial_fisher).item() == pytest.approx(size / noise_var, rel=1e-8)
    assert 0 < memory.total.item() <= size / noise_var * (1 + 1e-9)
    assert bool((memory.curve >= 0).all())


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 7), st.integers(0, 10_000))
def test_normal_matrices_see_every_direction_alike(size: int, seed: int) -> None:
    matrix = random_stable(seed, size, size)
    normal = matrix + matrix.mT
    normal = 0.9 * normal / torch.linalg.matrix_norm(normal, 2)
    memory = fisher_memory_curve(normal, random_source(seed, size), 1, 0.5)
    assert torch.allclose(memory.spatial_fisher, 2 * torch.eye(size, dtype=torch.float64), atol=1e-8)


def test_scaled_permutation_fades_geometrically() -> None:
    shift = 0.9 * torch.roll(torch.eye(6, dtype=torch.float64), 1, 0)
    curve = fisher_memory_curve(shift, random_source(5, 6), 4).curve
    assert curve[0].item() == pytest.approx(0.19, abs=1e-12)
    assert curve[3].item() == pytest.approx(0.10097379, abs=1e-8)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("index", [0, 2, 5, 6])
def test_rows_of_table_5_are_exact(index: int) -> None:
    row = TABLE5[index]
    memory = fisher_memory_curve(delay_line(100, row.sub, row.rest, row.diagonal), first(100), 150)
    assert memory.total.item() == pytest.approx(EXACT_TABLE5[index], abs=1e-5)
    assert memory.trace_error.item() < 1e-9
    assert memory.precision == ("256 bits" if row.diagonal else "double")


@pytest.mark.slow
def test_the_whole_of_table_5_is_exact() -> None:
    lines = torch.stack([delay_line(100, row.sub, row.rest, row.diagonal) for row in TABLE5])
    memory = fisher_memory_curve(lines, first(100), 150)
    assert memory.total.tolist() == pytest.approx(EXACT_TABLE5, abs=1e-5)
    assert bool(memory.trustworthy.all())
    points = memory.curve[11, [0, 1, 50, 99, 100, 149]].tolist()
    assert points == pytest.approx([0.98109, 0.51331, 0.14634, 0.13419, 0.13313, 2.33e-3], abs=5e-6)


@pytest.mark.parametrize(("size", "total"), [(20, 4.69963), (40, 7.53443), (60, 10.33317)])
def test_feedback_lines_remember_in_proportion_to_their_length(size: int, total: float) -> None:
    line = feedback_line(size, math.sqrt(0.95), math.sqrt(0.05))
    memory = fisher_memory_curve(line, first(size), 5)
    assert memory.total.item() == pytest.approx(total, abs=1e-5)
    assert (memory.precision == "double") == (size == 20)


def test_double_precision_says_when_it_fails() -> None:
    line = feedback_line(60, math.sqrt(0.95), math.sqrt(0.05))
    with pytest.warns(ConvergenceWarning, match=r"double cannot settle 1 of 1 .* Use precision='auto'"):
        memory = fisher_memory_curve(line, first(60), 5, precision="double")
    assert not bool(memory.trustworthy)
    assert math.isnan(memory.total.item())
    assert bool(memory.curve.isnan().all())


def test_balls_and_double_agree_where_double_is_enough() -> None:
    matrices, source = random_stable(7, 3, 6, 6), random_source(8, 6)
    double = fisher_memory_curve(matrices, source, 20, 0.3, precision="double")
    balls = fisher_memory_curve(matrices, source, 20, 0.3, precision=200)
    assert torch.allclose(double.curve, balls.curve, rtol=1e-10, atol=1e-14)
    assert torch.allclose(double.total, balls.total, rtol=1e-11)
    assert torch.allclose(double.spatial_fisher, balls.spatial_fisher, atol=1e-10)
    assert torch.allclose(double.covariance, balls.covariance, atol=1e-11)
    assert balls.bits.tolist() == [200, 200, 200]
    assert (double.method, balls.method) == ("doubling in double precision", "doubling in ball arithmetic")


def test_each_element_of_a_batch_chooses_its_own_precision() -> None:
    lines = torch.stack([delay_line(40, 0.95), delay_line(40, 2.0, diagonal=0.3)])
    together = fisher_memory_curve(lines, first(40), 10)
    assert together.bits[0].item() == 53 < together.bits[1].item()
    for line, total in zip(lines, together.total, strict=True):
        assert fisher_memory_curve(line, first(40), 10).total.item() == pytest.approx(total.item(), rel=1e-12)


def test_ball_arithmetic_leaves_the_global_precision_alone() -> None:
    before = flint.ctx.prec
    fisher_memory_curve(delay_line(5, 2.0, diagonal=0.1), first(5), 3, precision=300)
    assert flint.ctx.prec == before


def test_memory_does_not_depend_on_an_orthogonal_change_of_basis() -> None:
    line, source = delay_line(8, 1.2, 0.1, 0.3), first(8)
    basis = torch.linalg.qr(random_stable(9, 8, 8)).Q
    turned = fisher_memory_curve(basis @ line @ basis.mT, basis @ source, 12)
    assert torch.allclose(turned.curve, fisher_memory_curve(line, source, 12).curve, atol=1e-9)


def test_a_long_source_is_scaled_with_a_note() -> None:
    line = delay_line(5)
    memory = fisher_memory_curve(line, 3 * first(5), 3)
    assert memory.note == "source had length 3 and was scaled to 1"
    assert memory.curve.tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert fisher_memory_curve(line, first(5), 3).note == ""


def test_dtype_and_one_unit_are_respected() -> None:
    memory = fisher_memory_curve(torch.tensor([[0.5]]), torch.tensor([1.0]), 3)
    assert memory.curve.dtype == torch.float32
    assert memory.curve.tolist() == pytest.approx([0.75 * 0.25**k for k in range(3)])


def test_unstable_matrices_are_refused_with_a_scale() -> None:
    with pytest.raises(InvalidInput, match=r"spectral radius is 1\.25\. Multiply it by 0\.792 or less"):
        fisher_memory_curve(1.25 * torch.eye(3, dtype=torch.float64), first(3), 2)


def test_bad_arguments_are_refused() -> None:
    line = delay_line(3)
    with pytest.raises(InvalidInput, match=r"noise_var must be a positive number; got 0\.0"):
        fisher_memory_curve(line, first(3), 2, 0.0)
    with pytest.raises(InvalidInput, match="source must not be zero"):
        fisher_memory_curve(line, 0 * first(3), 2)
    with pytest.raises(InvalidInput, match="precision must be an integer of at least 53; got 20"):
        fisher_memory_curve(line, first(3), 2, precision=20)
    with pytest.raises(InvalidInput, match="n_steps must be an integer of at least 1; got 0"):
        fisher_memory_curve(line, first(3), 0)
    with pytest.raises(ShapeError, match=r"source must have one entry per unit \(3\); got shape \(4,\)"):
        inspect.unwrap(fisher_memory_curve)(line, first(4), 2)  # past the shape check of the tests


def test_bits_that_leave_too_few_digits_say_so() -> None:
    line = delay_line(20, 1.5, diagonal=0.3)
    with pytest.warns(ConvergenceWarning, match="80 bits cannot settle 1 of 1"):
        memory = fisher_memory_curve(line, first(20), 5, precision=80)
    assert math.isnan(memory.total.item())


def test_too_few_bits_are_refused() -> None:
    line = delay_line(60, 3.0, diagonal=0.5)
    with pytest.raises(InvalidInput, match="precision of 64 bits is too low for this matrix; use 'auto' or 128 bits"):
        fisher_memory_curve(line, first(60), 5, precision=64)
