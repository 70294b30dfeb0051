"""What every fixed-point method promises.

Every solver of the stub is entered by itself, with its defaults; a variant, or a solver of your own, is one more line
in ``SOLVERS``. The two strangers are written from the note to implementers in ``AbstractEquilibriumSolver`` alone.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from separatrix.core import ConvergenceWarning, InvalidInput, NotConverged, Outcome, ShapeError, use_backend
from separatrix.dynamics import (
    AbstractEquilibriumSolver,
    AffineMap,
    Anderson,
    Broyden,
    CountedMap,
    Picard,
    find_equilibrium,
    find_solver,
    solvers,
)
from separatrix.dynamics.solve.find import solve_quietly


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chebyshev(AbstractEquilibriumSolver[list[Tensor]]):
    """A stranger's two-step method: momentum along the last move."""

    momentum: float = 0.05

    def begin(self, fixed_point_map: CountedMap, z: Tensor) -> list[Tensor]:
        return []

    def propose(self, history: list[Tensor], z: Tensor, f: Tensor, residual: Tensor) -> Tensor:
        history.append(z)
        return f if len(history) < 2 else f + self.momentum * (z - history[-2])


@dataclasses.dataclass(frozen=True, kw_only=True)
class DenseNewton(AbstractEquilibriumSolver[CountedMap]):
    """A stranger's Newton method with the whole Jacobian of every sample."""

    def begin(self, fixed_point_map: CountedMap, z: Tensor) -> CountedMap:
        return fixed_point_map

    def propose(self, history: CountedMap, z: Tensor, f: Tensor, residual: Tensor) -> Tensor:
        identity = torch.eye(z.shape[1], dtype=z.dtype)
        columns = [history.derivative(z, unit.expand_as(z).contiguous()) for unit in identity]
        step, _ = torch.linalg.solve_ex(identity - torch.stack(columns, dim=2), residual)
        return z + step


SOLVERS: dict[str, Callable[..., Any]] = {
    **solvers(),
    "damped": lambda **options: Picard(damping=0.7, **options),
    "mixed": lambda **options: Anderson(mixing=0.6, **options),
    "broyden-short": lambda **options: Broyden(memory=4, **options),
    "broyden-armijo": lambda **options: Broyden(line_search=4, **options),
    "stranger: momentum": Chebyshev,
    "stranger: dense Newton": DenseNewton,
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::separatrix.core.ConvergenceWarning"),
    pytest.mark.sampled(4, across="solver"),
]


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return SOLVERS[request.param]


@pytest.fixture
def contraction(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    """z -> tanh(W z) + x with W 0.8 times an orthogonal matrix, four samples of dimension 12."""
    weight = 0.8 * torch.linalg.qr(torch.randn(12, 12, generator=generator, dtype=torch.float64))[0]
    x = torch.randn(4, 12, generator=generator, dtype=torch.float64)
    return lambda z: torch.tanh(z @ weight.to(z.dtype).mT) + x.to(z.dtype)


def start(rows: int = 4, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.zeros(rows, 12, dtype=dtype)


def test_all_methods_find_the_same_equilibrium(solver: Callable[..., Any], contraction: Any) -> None:
    z = start()
    for _ in range(400):  # 0.8^400 is below rounding
        z = contraction(z)
    solution = find_equilibrium(contraction, solver(tol=1e-12, max_steps=300), start())
    assert solution.ok
    assert torch.allclose(solution.value, z, atol=1e-10)  # tol / (1 - 0.8), times the norm of z


def test_residual_is_what_a_user_would_compute(solver: Callable[..., Any], contraction: Any) -> None:
    for max_steps in (1, 2, 3, 7, 40):  # converged or not
        with use_backend("torch"):  # compiled sums have an order of their own
            solution = find_equilibrium(contraction, solver(tol=1e-9, max_steps=max_steps), start(), throw=False)
        image = contraction(solution.best)
        residual = (image - solution.best).norm(dim=-1)
        assert torch.equal(solution.residual, residual)
        assert torch.allclose(solution.relative, residual / image.norm(dim=-1), rtol=1e-14)


def test_steps_are_bounded_and_the_trace_has_one_entry_each(solver: Callable[..., Any], contraction: Any) -> None:
    for max_steps in (1, 2, 5):
        solution = find_equilibrium(contraction, solver(tol=1e-14, max_steps=max_steps), start(), throw=False)
        assert solution.steps.tolist() == [max_steps] * 4
        assert solution.trace.shape == (max_steps, 4)
        assert set(solution.outcomes()) == {Outcome.OUT_OF_STEPS}
        assert bool(solution.value.isnan().all())


def test_a_start_that_is_the_equilibrium_takes_one_step_and_looks_around(
    solver: Callable[..., Any], contraction: Any
) -> None:
    z = find_equilibrium(contraction, Anderson(tol=1e-13, max_steps=200), start()).value
    solution = find_equilibrium(contraction, solver(tol=1e-10), z)
    assert bool((solution.steps == 1).all())
    # nothing moved, so the map is looked at beside the state, as ever beyond it, and along each of few units
    assert bool((solution.evaluations == 5 + z.shape[-1]).all())
    assert torch.equal(solution.value, z)


def test_an_empty_batch_gives_an_empty_solution(solver: Callable[..., Any], contraction: Any) -> None:
    solution = find_equilibrium(lambda z: z, solver(), start(rows=0))
    assert solution.ok
    assert solution.value.shape == (0, 12)
    assert solution.evaluations.shape == (0,)


def test_leading_batch_axes_are_kept(solver: Callable[..., Any]) -> None:
    solution = find_equilibrium(torch.cos, solver(tol=1e-10), torch.zeros(2, 3, 1, dtype=torch.float64))
    assert solution.value.shape == (2, 3, 1)
    assert solution.outcome.shape == solution.steps.shape == (2, 3)
    assert torch.allclose(solution.value, torch.tensor(0.7390851332, dtype=torch.float64), atol=1e-9)


@pytest.mark.sampled(5)
def test_a_nan_in_one_sample_leaves_the_others_bit_identical(solver: Callable[..., Any], contraction: Any) -> None:
    def poisoned(z: Tensor) -> Tensor:
        image = contraction(z).clone()
        image[1] = torch.nan
        return image

    clean = find_equilibrium(contraction, solver(tol=1e-9), start())
    solution = find_equilibrium(poisoned, solver(tol=1e-9), start(), throw=False)
    assert solution.outcomes()[1] is Outcome.NON_FINITE
    assert bool(solution.value[1].isnan().all())
    others = [0, 2, 3]
    assert torch.equal(solution.value[others], clean.value[others])
    assert torch.equal(solution.steps[others], clean.steps[others])
    assert torch.equal(solution.rate[others], clean.rate[others])


@settings(max_examples=3, deadline=None)
@given(name=st.sampled_from(sorted(SOLVERS)), row=st.integers(0, 3), scale=st.sampled_from([1e-3, 30.0, 1e200]))
def test_a_sample_does_not_feel_what_else_is_in_the_batch(name: str, row: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(5)
    weight = 0.9 * torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))[0]
    x = torch.randn(4, 8, generator=generator, dtype=torch.float64)
    other = x * scale
    other[row] = x[row]
    method = SOLVERS[name](tol=1e-10, max_steps=60)
    plain, changed = (
        find_equilibrium(lambda z, x=x: torch.tanh(z @ weight) + x, method, torch.zeros_like(x), throw=False)
        for x in (x, other)
    )
    assert torch.equal(plain.best[row], changed.best[row])
    assert plain.outcome[row] == changed.outcome[row]
    assert plain.steps[row] == changed.steps[row]


def test_a_nan_that_comes_late_does_not_cost_the_best_iterate(solver: Callable[..., Any], contraction: Any) -> None:
    calls = 0

    def failing(z: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        image: Tensor = contraction(z)
        return image if calls <= 3 else image * torch.nan

    solution = find_equilibrium(failing, solver(tol=1e-12), start(), throw=False)
    assert bool(torch.isfinite(solution.best).all())
    assert bool(torch.isfinite(solution.residual).all())
    assert set(solution.outcomes()) == {Outcome.NON_FINITE}


def test_failure_raises_with_the_solution_or_warns(solver: Callable[..., Any], contraction: Any) -> None:
    method = solver(tol=1e-12, max_steps=2)
    with pytest.raises(
        NotConverged, match=r"4 of 4 solves did not converge \(out of steps; .* Raise max_steps"
    ) as info:
        find_equilibrium(contraction, method, start())
    assert info.value.solution.n_failed == 4
    with pytest.warns(ConvergenceWarning, match="4 of 4"):
        find_equilibrium(contraction, method, start(), throw=False)
    with pytest.raises(NotConverged, match="4 of 4"):
        find_equilibrium(contraction, method, start(), throw=False).unwrap()


@pytest.mark.sampled(5)
def test_tolerance_below_single_precision_is_reported_as_stalled(solver: Callable[..., Any], contraction: Any) -> None:
    solution = find_equilibrium(contraction, solver(tol=1e-12, max_steps=400), start(dtype=torch.float32), throw=False)
    assert solution.value.dtype == torch.float32
    kinds = set(solution.outcomes())  # a sample may also land on f(z) = z exactly
    assert kinds <= {Outcome.STALLED, Outcome.CONVERGED}
    assert int(solution.steps.max()) < 400


def test_absolute_and_relative_stopping_differ_by_the_size_of_the_state(solver: Callable[..., Any]) -> None:
    def large(z: Tensor) -> Tensor:
        return 0.5 * z + 1e6

    z0 = torch.zeros(1, 2, dtype=torch.float64)
    relative = find_equilibrium(large, solver(tol=1e-3, stop="rel"), z0)
    absolute = find_equilibrium(large, solver(tol=1e-3, stop="abs"), z0)
    assert float(absolute.residual) <= 1e-3
    assert float(relative.relative) <= 1e-3


def test_neither_the_start_nor_the_global_generator_is_touched(solver: Callable[..., Any], contraction: Any) -> None:
    z0 = torch.full((4, 12), 0.3, dtype=torch.float64)
    before, state = z0.clone(), torch.get_rng_state()
    solution = find_equilibrium(contraction, solver(tol=1e-8), z0)
    solution.value.add_(1.0)
    assert torch.equal(z0, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_unknown_and_wrong_options_are_refused(solver: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="stop_mode"):
        solver(stop_mode="abs")
    with pytest.raises(InvalidInput, match=r"unknown stop 'both'\. Known: abs, rel"):
        solver(stop="both")
    with pytest.raises(InvalidInput, match="tol must be a positive number"):
        solver(tol=0.0)
    with pytest.raises(InvalidInput, match="max_steps must be an integer of at least 1"):
        solver(max_steps=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        solver().tol = 1.0


def test_bad_arguments_are_refused(solver: Callable[..., Any]) -> None:
    unchecked = inspect.unwrap(solve_quietly)  # as users call it, without the checks of types
    with pytest.raises(InvalidInput, match="solver must be a name or an AbstractEquilibriumSolver object; got 3"):
        unchecked(torch.cos, 3, torch.zeros(1, 1))
    with pytest.raises(InvalidInput, match=r"z0 must be a floating tensor \(batch, d\); got int64 of shape \(2,\)"):
        unchecked(torch.cos, solver(), torch.ones(2, dtype=torch.int64))
    with pytest.raises(ShapeError, match=r"must return the shape it is given, \(2, 3\); it returned \(2, 2\)"):
        find_equilibrium(lambda z: z[:, :2], solver(), torch.ones(2, 3))


def test_the_caller_s_gradients_do_not_enter(solver: Callable[..., Any], contraction: Any) -> None:
    z0 = start().requires_grad_()
    assert not find_equilibrium(contraction, solver(tol=1e-8), z0).value.requires_grad


class Watched:
    """A map that counts how often it is called."""

    def __init__(self, inner: Callable[[Tensor], Tensor]) -> None:
        self.inner, self.calls = inner, 0

    def __call__(self, z: Tensor) -> Tensor:
        self.calls += 1
        return self.inner(z)


def test_every_evaluation_is_counted_and_no_other(solver: Callable[..., Any], contraction: Any) -> None:
    watched = Watched(contraction)
    solution = find_equilibrium(watched, solver(tol=1e-10), start())
    assert int(solution.evaluations.max()) == watched.calls
    assert bool((solution.evaluations >= solution.steps).all())


def test_products_with_the_matrix_of_an_affine_map_are_counted_too(solver: Callable[..., Any]) -> None:
    linear = Watched(lambda v: v @ torch.tensor([[0.2, 0.5], [-0.5, 0.2]], dtype=v.dtype))
    problem = AffineMap(linear, torch.ones(3, 2, dtype=torch.float64))
    solution = find_equilibrium(problem, solver(tol=1e-10), torch.zeros(3, 2, dtype=torch.float64))
    assert int(solution.evaluations.max()) == linear.calls


MAPS_WITHOUT_EQUILIBRIUM: dict[str, Callable[[Tensor], Tensor]] = {
    "shift": lambda z: z + 1,
    "exponential": torch.exp,
    "jump": lambda z: torch.where(z < 0.5, 1.0, 0.0).to(z.dtype),
}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("name", MAPS_WITHOUT_EQUILIBRIUM)
@pytest.mark.parametrize("stop", ["abs", "rel"])
def test_a_map_without_equilibrium_is_never_solved(solver: Callable[..., Any], name: str, stop: str) -> None:
    z0 = torch.full((2, 2), 0.3, dtype=torch.float64)
    solution = find_equilibrium(MAPS_WITHOUT_EQUILIBRIUM[name], solver(stop=stop, max_steps=30), z0, throw=False)
    assert Outcome.CONVERGED not in solution.outcomes()
    assert bool(solution.value.isnan().all())
    assert bool(torch.isfinite(solution.best).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_map_that_is_nan_everywhere_is_told_after_one_step(solver: Callable[..., Any], dtype: torch.dtype) -> None:
    solution = find_equilibrium(lambda z: z * torch.nan, solver(), start(dtype=dtype), throw=False)
    assert set(solution.outcomes()) == {Outcome.NON_FINITE}
    assert solution.steps.tolist() == [1] * 4
    assert bool(solution.best.isnan().all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_answer_has_the_precision_of_the_start(solver: Callable[..., Any], dtype: torch.dtype) -> None:
    solution = find_equilibrium(torch.cos, solver(tol=1e-5), torch.zeros(2, 3, dtype=dtype))
    assert solution.value.dtype == solution.residual.dtype == solution.trace.dtype == dtype
    assert torch.allclose(solution.value, torch.tensor(0.7390851332, dtype=dtype), atol=2e-5)


@pytest.mark.sampled(5)
def test_one_solver_serves_many_solves(solver: Callable[..., Any], contraction: Any) -> None:
    method = solver(tol=1e-9)
    first = find_equilibrium(contraction, method, start())
    find_equilibrium(torch.cos, method, torch.zeros(2, 1, dtype=torch.float64))
    again = find_equilibrium(contraction, method, start())
    assert torch.equal(first.value, again.value)
    assert torch.equal(first.evaluations, again.evaluations)


@pytest.mark.sampled(2)
def test_a_solve_can_be_mapped(solver: Callable[..., Any], contraction: Any) -> None:
    shifts = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    method = solver(tol=1e-11, max_steps=200)

    def value(shift: Tensor) -> Tensor:
        return find_equilibrium(lambda z: contraction(z) + shift, method, start(), throw=False).best

    alone = torch.stack([value(shift) for shift in shifts])
    assert torch.allclose(torch.func.vmap(value)(shifts), alone, atol=1e-9)


def test_a_solver_may_be_named(contraction: Any) -> None:
    named, given_ = (find_equilibrium(contraction, method, start()) for method in ("anderson", Anderson()))
    assert torch.equal(named.value, given_.value)
    assert find_solver("newton-krylov", tol=1e-3).tol == 1e-3
    with pytest.raises(InvalidInput, match=r"unknown solver 'andersen'\. Did you mean 'anderson'\?"):
        find_equilibrium(contraction, "andersen", start())


@pytest.mark.parametrize("kind", solvers().values())
def test_a_misspelt_option_gets_the_nearest(kind: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"'max_step'\. Did you mean 'max_steps'\?"):
        kind(max_step=3)


def test_a_proposal_of_another_shape_or_type_is_refused() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Careless(AbstractEquilibriumSolver[None]):
        def begin(self, fixed_point_map: CountedMap, z: Tensor) -> None:
            return None

        def propose(self, history: None, z: Tensor, f: Tensor, residual: Tensor) -> Tensor:
            return f.to(torch.float16)

    with pytest.raises(
        ShapeError, match=r"Careless.propose must return float64 of shape \(4, 12\); it returned float16"
    ):
        find_equilibrium(torch.cos, Careless(), start())
