"""What single fixed-point methods are for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core import ConvergenceWarning, InvalidInput, Outcome
from separatrix.dynamics import AffineMap, Anderson, Auto, Broyden, NewtonKrylov, Picard, find_equilibrium, gmres
from separatrix.dynamics.solve.find import solve_quietly


def linear_map(matrix: Tensor, x: Tensor) -> AffineMap:
    return AffineMap(lambda z: z @ matrix.mT, x)


def haar(dim: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))[0]


@pytest.mark.parametrize("max_steps", [8, 40, 2000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_picard_on_a_repelling_map_reports_divergence_and_holds_nan(max_steps: int, dtype: torch.dtype) -> None:
    with pytest.warns(ConvergenceWarning, match=r"diverged.*The map repels"):
        solution = find_equilibrium(
            lambda z: 2 * z + 1, Picard(max_steps=max_steps), torch.zeros(3, 2, dtype=dtype), throw=False
        )
    assert set(solution.outcomes()) == {Outcome.DIVERGED}
    assert bool(solution.value.isnan().all())
    assert bool(torch.isfinite(solution.best).all())
    assert torch.allclose(solution.rate, torch.tensor(2.0, dtype=dtype), rtol=1e-5)


@pytest.mark.parametrize("method", [Anderson(tol=1e-10), Broyden(tol=1e-10), NewtonKrylov(tol=1e-10), Auto(tol=1e-10)])
def test_quasi_newton_methods_find_a_repelling_equilibrium(method: object) -> None:
    solution = find_equilibrium(lambda z: 2 * z + 1, method, torch.zeros(2, 3, dtype=torch.float64))  # type: ignore[arg-type]
    assert torch.allclose(solution.value, torch.tensor(-1.0, dtype=torch.float64))


def test_an_overflow_after_growth_is_a_divergence_not_a_bad_input() -> None:
    with pytest.warns(ConvergenceWarning):
        solution = find_equilibrium(lambda z: z**3, Picard(divergence=1e300), torch.full((1, 1), 2.0), throw=False)
    assert solution.outcomes() == [Outcome.DIVERGED]


def test_damping_tames_a_period_two_oscillation() -> None:
    matrix = torch.diag(torch.tensor([-1.2, 0.3], dtype=torch.float64))
    problem = linear_map(matrix, torch.ones(1, 2, dtype=torch.float64))
    z0 = torch.zeros(1, 2, dtype=torch.float64)
    with pytest.warns(ConvergenceWarning):
        assert not find_equilibrium(problem, Picard(), z0, throw=False).ok
    assert find_equilibrium(problem, Picard(damping=0.5), z0).ok


def test_anderson_solves_a_linear_problem_in_as_many_steps_as_dimensions(generator: torch.Generator) -> None:
    # with full memory Anderson is GMRES: d steps, and one to see that it is done; the first looks at the start
    matrix = 0.95 * haar(5, generator)
    problem = linear_map(matrix, torch.randn(3, 5, generator=generator, dtype=torch.float64))
    solution = find_equilibrium(problem, Anderson(tol=1e-9, memory=6), torch.zeros(3, 5, dtype=torch.float64))
    assert int(solution.steps.max()) <= 7


def test_anderson_does_not_stall_at_small_residuals(generator: torch.Generator) -> None:
    # inputs of size 0.01, where an absolute ridge of 1e-4 exceeds every entry of the Gram matrix
    matrix = 0.9 * haar(64, generator)
    x = 0.01 * torch.randn(8, 64, generator=generator, dtype=torch.float64)

    def cell(z: Tensor) -> Tensor:
        return torch.tanh(z @ matrix) + x

    z0 = torch.zeros_like(x)
    accelerated = find_equilibrium(cell, Anderson(tol=1e-8, max_steps=400), z0)
    plain = find_equilibrium(cell, Picard(tol=1e-8, max_steps=400), z0)
    assert int(accelerated.steps.max()) < int(plain.steps.max())


def test_broyden_restarts_when_its_memory_is_full(generator: torch.Generator) -> None:
    matrix = 0.9 * haar(20, generator)
    problem = linear_map(matrix, torch.randn(3, 20, generator=generator, dtype=torch.float64))
    z0 = torch.zeros(3, 20, dtype=torch.float64)
    full = find_equilibrium(problem, Broyden(tol=1e-9, memory=60, max_steps=300), z0)
    short = find_equilibrium(problem, Broyden(tol=1e-9, memory=5, max_steps=300), z0)
    assert torch.allclose(full.value, short.value, atol=1e-7)
    assert int(full.steps.max()) < int(short.steps.max())


@pytest.mark.parametrize("line_search", [0, 3])
def test_broyden_takes_the_steps_of_the_dense_formula(line_search: int, generator: torch.Generator) -> None:
    weight = 2 * torch.randn(6, 6, generator=generator, dtype=torch.float64)  # expanding, so that some steps are halved

    def residual(z: Tensor) -> Tensor:
        return torch.tanh(weight @ z) + 1 - z

    z, inverse, sizes, lengths = torch.zeros(6, dtype=torch.float64), torch.eye(6, dtype=torch.float64), [], set()
    for _ in range(12):
        r = residual(z)
        sizes.append(r.norm())
        direction, length = inverse @ r, 1.0
        for _ in range(line_search):
            if residual(z + length * direction).norm() <= (1 - 1e-4 * length) * r.norm():
                break
            length /= 2
        lengths.add(length)
        step = length * direction
        z = z + step
        change = residual(z) - r
        row = step @ inverse
        inverse = inverse - torch.outer(step + inverse @ change, row) / (row @ change)
    assert (len(lengths) > 1) == (line_search > 0)
    method = Broyden(tol=1e-300, max_steps=12, line_search=line_search)
    with pytest.warns(ConvergenceWarning):
        solution = find_equilibrium(
            lambda z: torch.tanh(z @ weight.mT) + 1, method, torch.zeros(1, 6, dtype=torch.float64), throw=False
        )
    assert torch.allclose(solution.trace[:, 0], torch.stack(sizes), rtol=1e-7)


def test_line_search_lowers_the_residual_at_every_step_it_can() -> None:
    def steep(z: Tensor) -> Tensor:  # Picard from 3 jumps far beyond the equilibrium near 0
        return z - torch.atan(4 * z)

    z0 = torch.full((1, 1), 3.0, dtype=torch.float64)
    searched = find_equilibrium(steep, Broyden(tol=1e-10, stop="abs", line_search=8), z0)
    assert bool((searched.trace[1:] < searched.trace[:-1]).all())
    assert bool((searched.evaluations > searched.steps).all())


@pytest.mark.parametrize(
    "method", [Picard(tol=1e-6), Anderson(tol=1e-6), Broyden(tol=1e-6)], ids=lambda m: type(m).__name__
)
def test_evaluations_are_counted_until_a_sample_is_finished(method: Any) -> None:
    rates = torch.tensor([0.1, 0.5, 0.8], dtype=torch.float64)[:, None] * torch.linspace(0, 1, 8, dtype=torch.float64)
    solution = find_equilibrium(lambda z: rates * z + 1, method, torch.zeros_like(rates))
    # one looks beyond the equilibrium, and one along each of the eight units
    assert torch.equal(solution.evaluations, solution.steps + 1 + 8)
    assert int(solution.evaluations[0]) < int(solution.evaluations[-1])


def test_newton_converges_quadratically_and_counts_its_products() -> None:
    solution = find_equilibrium(torch.cos, NewtonKrylov(tol=1e-14), torch.zeros(1, 1, dtype=torch.float64))
    assert int(solution.steps) <= 7
    assert int(solution.evaluations) > int(solution.steps)


def test_auto_stays_with_picard_where_it_is_fast(generator: torch.Generator) -> None:
    x = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    fast = linear_map(0.3 * haar(6, generator), x)
    z0 = torch.zeros_like(x)
    auto, picard = (find_equilibrium(fast, method, z0) for method in (Auto(tol=1e-8), Picard(tol=1e-8)))
    assert torch.equal(auto.value, picard.value)


def test_auto_accelerates_where_picard_is_slow_or_repelled(generator: torch.Generator) -> None:
    x = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    z0 = torch.zeros_like(x)
    slow = linear_map(0.99 * haar(6, generator), x)
    oscillating = linear_map(torch.diag(torch.tensor([-1.5, 0.5, 0.2, 0.1, 0.0, -0.3], dtype=torch.float64)), x)
    for problem in (slow, oscillating):
        assert int(find_equilibrium(problem, Auto(tol=1e-8), z0).steps.max()) < 60  # Picard: 1800 and never


def test_mixing_now_and_then_needs_fewer_evaluations_on_a_stretched_spectrum(generator: torch.Generator) -> None:
    rotation = haar(100, generator)
    matrix = rotation @ torch.diag(torch.linspace(0, 0.99, 100, dtype=torch.float64)) @ rotation.mT
    problem = linear_map(matrix, torch.randn(4, 100, generator=generator, dtype=torch.float64))
    z0 = torch.zeros(4, 100, dtype=torch.float64)
    evaluations = {
        period: find_equilibrium(problem, Anderson(tol=1e-8, max_steps=400, period=period), z0).evaluations.max()
        for period in (1, 3)
    }
    assert evaluations[3] < evaluations[1] / 2  # 70 against 199


def test_rate_is_the_spectral_radius_for_a_scaled_orthogonal_matrix(generator: torch.Generator) -> None:
    problem = linear_map(0.7 * haar(10, generator), torch.randn(2, 10, generator=generator, dtype=torch.float64))
    solution = find_equilibrium(problem, Picard(tol=1e-8), torch.zeros(2, 10, dtype=torch.float64))
    assert torch.allclose(solution.rate, torch.full((2,), 0.7, dtype=torch.float64), rtol=1e-6)


def test_gmres_agrees_with_a_dense_solve_row_by_row(generator: torch.Generator) -> None:
    matrices = torch.randn(3, 7, 7, generator=generator, dtype=torch.float64) + 4 * torch.eye(7, dtype=torch.float64)
    rhs = torch.randn(3, 7, generator=generator, dtype=torch.float64)
    rhs[1] = 0
    solved = gmres(
        lambda v: (matrices @ v.unsqueeze(-1)).squeeze(-1), rhs, torch.full((3,), 1e-12, dtype=torch.float64), 7
    )
    assert torch.allclose(solved, torch.linalg.solve(matrices, rhs.unsqueeze(-1)).squeeze(-1), atol=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Picard(damping=0.0), r"damping must lie in \(0, 1\]"),
        (lambda: Anderson(memory=0), "memory must be an integer of at least 1"),
        (lambda: Anderson(mixing=1.5), r"mixing must lie in \(0, 1\]"),
        (lambda: Anderson(ridge=-1.0), "ridge must not be negative"),
        (lambda: Broyden(line_search=-1), "line_search must be an integer of at least 0"),
        (lambda: NewtonKrylov(trust=0.0), "trust must be a positive number"),
        (lambda: Auto(patience=-1), "patience must be an integer of at least 0"),
    ],
)
def test_options_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("solver", ["anderson", "broyden", "newton-krylov", "picard", "auto"])
def test_states_whose_squares_are_no_numbers_are_solved_for(solver: str) -> None:
    place = torch.tensor([[1e-30], [1.0], [1e30], [-1e-33], [-1e34]])
    solution = find_equilibrium(lambda z: place * torch.cos(z / place), solver, torch.zeros(5, 2))
    assert torch.allclose(solution.value / place, torch.full((5, 2), 0.739085), rtol=1e-3)
    residual = solution.residual.double() / place.double().abs().squeeze(1)
    assert bool(((residual > 0) & (residual < 1e-3)).all())
    assert bool((solution.error.double() < 1e-3 * place.double().abs().squeeze(1)).all())


def test_an_affine_map_and_watched_steps_have_units_too() -> None:
    offset = torch.tensor([[1e-30, 2e-30], [3e30, 1e30]])
    solution = find_equilibrium(AffineMap(lambda v: 0.5 * v, offset), "picard", torch.zeros(2, 2))
    assert torch.allclose(solution.value / offset, torch.full((2, 2), 2.0), rtol=1e-3)


@pytest.mark.parametrize("solver", ["anderson", "broyden", "newton-krylov", "picard", "auto"])
def test_a_map_that_is_infinite_at_the_start_is_not_finite(solver: str) -> None:
    solution = solve_quietly(lambda z: z + torch.inf, solver, torch.ones(2, 3))
    assert solution.outcome.tolist() == [Outcome.NON_FINITE] * 2
