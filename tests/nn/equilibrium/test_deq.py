from __future__ import annotations

import copy
import inspect
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import ConvergenceWarning, InvalidInput, NotConverged, Outcome, SeparatrixError
from separatrix.dynamics import Anderson, Broyden, Picard, solvers
from separatrix.nn import DEQ, Exact, Implicit, Neumann, OneStep, Phantom, TanhCell, Unrolled, VariationalDropout

SOLVERS = list(solvers().values())


@pytest.fixture
def cell(generator: torch.Generator) -> TanhCell:
    return TanhCell(6, ensemble="haar", weight_var=0.49, generator=generator, dtype=torch.float64)


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(3, 6, generator=generator, dtype=torch.float64)


def tight(make: Callable[..., Any], cell: Any, **options: Any) -> DEQ:
    solver = make(tol=1e-12, max_steps=300)
    return DEQ(cell, solver=solver, backward=Implicit(solver=solver), **options)


def gradients(layer: Callable[[Tensor], Tensor], cell: nn.Module, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    return list(torch.autograd.grad(layer(x).pow(3).sum(), [x, *cell.parameters()]))


@pytest.mark.parametrize("make", SOLVERS)
def test_implicit_gradients_equal_the_unrolled_ones(make: Callable[..., Any], cell: TanhCell, x: Tensor) -> None:
    implicit = gradients(tight(make, cell), cell, x)
    exact = make(tol=1e-12, max_steps=300)
    unrolled = gradients(DEQ(cell, solver=exact, backward=Unrolled(steps=200)), cell, x)
    for ours, theirs in zip(implicit, unrolled, strict=True):
        assert float((ours - theirs).norm() / theirs.norm()) < 1e-6


@pytest.mark.parametrize("make", SOLVERS)
def test_gradcheck_in_double_precision(make: Callable[..., Any], cell: TanhCell, x: Tensor) -> None:
    layer = tight(make, cell)
    weight = cell.linear.weight.detach().clone().requires_grad_()

    def output(x: Tensor, weight: Tensor) -> Any:
        return torch.func.functional_call(layer, {"cell.linear.weight": weight}, (x,))

    inputs = (x[:2].clone().requires_grad_(), weight)
    assert torch.autograd.gradcheck(output, inputs, rtol=1e-6, atol=1e-6, fast_mode=True)


def test_exact_backward_agrees_with_the_iterative_one(cell: TanhCell, x: Tensor) -> None:
    solver = Anderson(tol=1e-12, max_steps=300)
    for a, b in zip(
        gradients(DEQ(cell, solver=solver, backward=Exact()), cell, x),
        gradients(tight(Anderson, cell), cell, x),
        strict=True,
    ):
        assert torch.allclose(a, b, rtol=1e-8, atol=1e-10)
    with pytest.raises(InvalidInput, match=r"Exact\(\) is for d up to 3; the state has d = 6"):
        gradients(DEQ(cell, backward=Exact(largest=3)), cell, x)


def test_a_gradient_in_single_precision_is_as_exact_as_its_two_solves(generator: torch.Generator) -> None:
    cell = TanhCell(64, ensemble="gaussian", weight_var=0.8, generator=generator)
    x = torch.randn(16, 64, generator=generator)
    rough = gradients(DEQ(cell, solver=Anderson(tol=1e-4), backward=Implicit(solver=Anderson(tol=1e-4))), cell, x)
    solver = Anderson(tol=1e-12, max_steps=300)
    exact = gradients(DEQ(cell.double(), solver=solver, backward=Exact()), cell, x.double())
    for a, b in zip(rough, exact, strict=True):
        # residuals of 1e-4 forward and back, over 1 - r with the radius r of the Jacobian near 0.6
        assert float((a - b).norm() / b.norm()) <= 5e-4


def test_approximate_backwards_approach_the_implicit_one(cell: TanhCell, x: Tensor) -> None:
    exact = gradients(tight(Anderson, cell), cell, x)[1]

    def error(backward: Any) -> float:
        layer = DEQ(cell, solver=Anderson(tol=1e-12, max_steps=300), backward=backward)
        return float((gradients(layer, cell, x)[1] - exact).norm() / exact.norm())

    assert error(Neumann(terms=60)) < 1e-6  # 0.7^60 = 5e-10, times the slope
    assert error(Phantom(steps=150, damping=0.5)) < 1e-6
    assert error(Neumann(terms=0)) == pytest.approx(error(OneStep()), rel=1e-6)
    assert error(Neumann(terms=8)) < error(Neumann(terms=2)) < error(OneStep())
    assert error(Phantom(steps=12)) < error(Phantom(steps=3))


def test_output_is_the_solution_with_its_reported_residual(cell: TanhCell, x: Tensor) -> None:
    layer = DEQ(cell, solver=Anderson(tol=1e-5))
    z = layer(x)
    assert layer.last is not None
    assert torch.equal(z, layer.last.value)
    assert torch.equal((cell(z, x) - z).norm(dim=-1), layer.last.residual)
    with torch.no_grad():
        assert torch.equal(layer(x), z)
    assert layer.last_backward is None
    layer(x).sum().backward()
    assert layer.last_backward is not None
    assert layer.last_backward.ok


def test_memory_of_training_does_not_grow_with_the_solver_steps(generator: torch.Generator) -> None:
    cell = TanhCell(64, ensemble="haar", weight_var=0.97, bias=False, generator=generator)
    x = torch.randn(32, 64, generator=generator)

    def saved(layer: DEQ) -> int:
        kept: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            layer(x.clone().requires_grad_())
        return sum(kept.values())

    few, many = (saved(DEQ(cell, solver=Picard(tol=1e-12, max_steps=steps), on_fail="return")) for steps in (5, 100))
    assert few == many
    unrolled = [saved(DEQ(cell, backward=Unrolled(steps=steps))) for steps in (5, 100)]
    assert unrolled[1] > 10 * unrolled[0]
    assert many < unrolled[0]


class PairCell(nn.Module):
    """Two coupled states of different shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))

    def forward(self, state: tuple[Tensor, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = state
        return self.scale * torch.tanh(b.sum(-1)) + x, self.scale * torch.sin(a).unsqueeze(-1) + 0.1 * b


def pair_start(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(x), x.new_zeros(*x.shape, 2)


def test_tuples_and_dictionaries_of_tensors_are_states(x: Tensor) -> None:
    cell = PairCell()
    layer = tight(Broyden, cell, initial=pair_start)
    a, b = layer(x)
    assert a.shape == (3, 6)
    assert b.shape == (3, 6, 2)
    for part, image in zip((a, b), cell((a, b), x), strict=True):
        assert torch.allclose(part, image, atol=1e-10)
    named = tight(
        Broyden,
        lambda state, x: dict(zip(("a", "b"), cell((state["a"], state["b"]), x), strict=True)),
        initial=lambda x: dict(zip(("a", "b"), pair_start(x), strict=True)),
    )
    found = named(x)
    assert torch.allclose(found["a"], a)
    (gradient,) = torch.autograd.grad(found["b"].sum(), cell.scale)
    (expected,) = torch.autograd.grad(b.sum(), cell.scale)
    assert float(gradient) == pytest.approx(float(expected), rel=1e-8)


def test_gradients_reach_what_the_cell_closes_over(x: Tensor) -> None:
    scale = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    z = tight(Picard, lambda z, x: scale * z + x)(x)
    z.sum().backward()
    assert scale.grad is not None
    assert float(scale.grad) == pytest.approx(float(x.sum() / (1 - 0.4) ** 2), rel=1e-9)  # z = x / (1 - scale)


def test_warm_start_saves_evaluations(cell: TanhCell, x: Tensor) -> None:
    layer = DEQ(cell, solver=Picard(tol=1e-8))
    cold = layer(x)
    assert layer.last is not None
    first = layer.last.evaluations.max()
    layer(x + 1e-6, cold.detach())
    assert layer.last is not None
    assert layer.last.evaluations.max() < first / 2


@pytest.mark.parametrize(("on_fail", "kind"), [("raise", NotConverged), ("warn", ConvergenceWarning)])
def test_failure_is_told_as_asked(on_fail: Any, kind: type, cell: TanhCell, x: Tensor) -> None:
    layer = DEQ(cell, solver=Picard(tol=1e-10, max_steps=3), on_fail=on_fail)
    expect = pytest.raises if on_fail == "raise" else pytest.warns
    with expect(kind, match="forward pass: 3 of 3 solves did not converge"):  # type: ignore[operator]
        layer(x)


def test_a_backward_solve_that_fails_is_told_too(cell: TanhCell, x: Tensor) -> None:
    layer = DEQ(cell, backward=Implicit(solver=Picard(tol=1e-12, max_steps=2)), on_fail="warn")
    z = layer(x)
    with pytest.warns(ConvergenceWarning, match="backward pass: 3 of 3"):
        z.sum().backward()


def test_samples_that_fail_return_their_best_iterate_and_leave_the_others_alone(x: Tensor) -> None:
    slope = torch.tensor([0.5, 3.0, 0.5], dtype=torch.float64)[:, None]
    layer = DEQ(lambda z, x: slope * z + x, solver=Picard(tol=1e-10), on_fail="return")
    z = layer(x)
    assert layer.last is not None
    assert layer.last.outcomes() == [Outcome.CONVERGED, Outcome.DIVERGED, Outcome.CONVERGED]
    assert bool(torch.isfinite(z).all())
    assert bool(layer.last.value[1].isnan().all())
    assert torch.allclose(z[[0, 2]], 2 * x[[0, 2]])


def test_second_derivatives_raise(cell: TanhCell, x: Tensor) -> None:
    layer = DEQ(cell)
    x = x.requires_grad_()
    with pytest.raises(
        SeparatrixError, match=r"no second derivative unless asked for: use backward=Implicit\(second_order=True\)"
    ):
        torch.autograd.grad(layer(x).sum(), x, create_graph=True)
    unrolled = DEQ(cell, backward=Unrolled(steps=30))
    (first,) = torch.autograd.grad(unrolled(x).pow(2).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert bool(torch.isfinite(second).all())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", SOLVERS)
def test_torch_func_gives_the_same_derivatives(make: Callable[..., Any], cell: TanhCell, x: Tensor) -> None:
    layer = tight(make, cell)
    expected = gradients(layer, cell, x)
    parameters = dict(layer.named_parameters())

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(layer, parameters, (x,))
        return out.pow(3).sum()

    by_parameters, by_input = torch.func.grad(loss, argnums=(0, 1))(parameters, x)
    assert torch.allclose(by_input, expected[0], rtol=1e-8)
    assert torch.allclose(by_parameters["cell.linear.weight"], expected[1], rtol=1e-8)
    direction = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)
    _, along = torch.func.jvp(lambda x: loss(parameters, x), (x,), (direction,))
    assert torch.allclose(along, (expected[0] * direction).sum(), rtol=1e-8)
    with pytest.raises(SeparatrixError, match="no second derivative"):
        torch.func.grad(lambda x: torch.func.grad(lambda x: loss(parameters, x))(x).sum())(x)


def test_autocast_to_bfloat16_runs_the_cell_in_half_precision_and_the_solver_in_single(
    generator: torch.Generator,
) -> None:
    cell = TanhCell(32, weight_var=0.25, generator=generator)
    x = torch.randn(8, 32, generator=generator)
    seen: list[torch.dtype] = []
    cell.linear.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    layer = DEQ(cell, on_fail="raise")  # the default tolerances follow the precision
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = layer(x)
    z.square().sum().backward()
    assert set(seen) == {torch.bfloat16}
    assert z.dtype == torch.float32
    full = DEQ(cell, solver=Anderson(tol=1e-6))(x).detach()
    assert float((z.detach() - full).norm() / full.norm()) < 0.1  # the tolerance of bfloat16
    assert cell.linear.weight.grad is not None
    assert bool(torch.isfinite(cell.linear.weight.grad).all())


def test_half_precision_states_come_back_in_half_precision(generator: torch.Generator) -> None:
    z = DEQ(lambda z, x: 0.5 * torch.tanh(z) + x, solver=Anderson(tol=3e-2))(torch.ones(2, 3, dtype=torch.bfloat16))
    assert z.dtype == torch.bfloat16


def test_state_dict_copy_and_pickle_round_trip(cell: TanhCell, x: Tensor) -> None:
    layer = DEQ(cell, solver=Anderson(tol=1e-8))
    z = layer(x)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin.last is None
        assert torch.equal(twin(x), z)
    assert set(layer.state_dict()) == {"cell.linear.weight", "cell.linear.bias"}
    other = TanhCell(6, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    restored = DEQ(other, solver=Anderson(tol=1e-8))
    restored.load_state_dict(layer.state_dict())
    assert torch.equal(restored(x), z)


class PlainCell(nn.Module):
    """A cell without run-time shape checks, which the compiler cannot look through."""

    def __init__(self, cell: TanhCell) -> None:
        super().__init__()
        self.linear = cell.linear

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(z)) + x


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the compiler looks at non-leaf tensors
def test_a_compiled_cell_gives_the_same_equilibrium_and_gradient(cell: TanhCell, x: Tensor) -> None:
    compiled = torch.compile(PlainCell(cell), backend="eager")
    for ours, theirs in zip(
        gradients(tight(Anderson, compiled), cell, x), gradients(tight(Anderson, cell), cell, x), strict=True
    ):
        assert torch.allclose(ours, theirs, rtol=1e-9)


def test_distributed_data_parallel_averages_the_gradients(cell: TanhCell, x: Tensor) -> None:
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    expected = gradients(tight(Anderson, cell), cell, x)[1]
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        parallel = DistributedDataParallel(tight(Anderson, cell))
        parallel(x).pow(3).sum().backward()
        time.sleep(0.1)  # torch waits for gloo's threads with the interpreter in hand, which they may still need
    finally:
        distributed.destroy_process_group()
    assert cell.linear.weight.grad is not None
    assert torch.allclose(cell.linear.weight.grad, expected)


def test_ordinary_dropout_in_the_cell_is_refused_in_training_only(x: Tensor) -> None:
    class DroppingCell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.5)

        def forward(self, z: Tensor, x: Tensor) -> Tensor:
            out: Tensor = 0.5 * self.dropout(torch.tanh(z + 1)) + x
            return out

    layer = DEQ(DroppingCell())
    with pytest.raises(InvalidInput, match=r"gave two different results.*VariationalDropout"):
        layer(x)
    assert layer.eval()(x).shape == x.shape


def test_variational_dropout_keeps_one_mask_per_solve_and_draws_another_for_the_next(
    x: Tensor, generator: torch.Generator
) -> None:
    class DroppingCell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = VariationalDropout(0.5, generator=generator)

        def forward(self, z: Tensor, x: Tensor) -> Tensor:
            out: Tensor = 0.5 * self.dropout(torch.tanh(z + 1)) + x
            return out

    layer = DEQ(DroppingCell(), solver=Anderson(tol=1e-10), on_fail="raise")
    first, second = layer(x), layer(x)
    assert not torch.equal(first, second)
    dropped = torch.isclose(first, x)  # a dropped entry keeps its input alone
    assert 0 < int(dropped.sum()) < x.numel()
    assert len({tuple(row.tolist()) for row in dropped}) > 1  # a mask for each sample


def test_bad_arguments_are_refused(cell: TanhCell, x: Tensor) -> None:
    make = inspect.unwrap(DEQ.__init__)
    with pytest.raises(InvalidInput, match=r"unknown on_fail 'ignore'\. Known: raise, return, warn"):
        make(DEQ.__new__(DEQ), cell, on_fail="ignore")
    with pytest.raises(InvalidInput, match=r"solver must be a name or an AbstractEquilibriumSolver object; got 3"):
        make(DEQ.__new__(DEQ), cell, solver=3)
    with pytest.raises(TypeError, match=r"unknown option of DEQ 'on_failure'\. Did you mean 'on_fail'\?"):
        DEQ(cell, on_failure="warn")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="initial must be given when the input is not a tensor; got tuple"):
        DEQ(lambda z, x: z)((x, x))
    with pytest.raises(InvalidInput, match=r"must return a state like the one it gets: shapes \[\(3, 6\)\]"):
        DEQ(lambda z, x: z[:, :2])(x)
    with pytest.raises(InvalidInput, match="must share their first axis"):
        DEQ(lambda z, x: z)(x, (x, x[:2]))
    with pytest.raises(InvalidInput, match=r"terms must be an integer of at least 0"):
        Neumann(terms=-1)
    with pytest.raises(InvalidInput, match=r"damping must lie in \(0, 1\]"):
        Phantom(damping=2.0)


def test_an_empty_batch_passes_through(cell: TanhCell) -> None:
    assert DEQ(cell)(torch.zeros(0, 6, dtype=torch.float64)).shape == (0, 6)


def test_where_the_forward_solve_converges_the_backward_one_does_by_default() -> None:
    """In double precision it asks for a hundredth of the error: within 60 steps 2 of 100 solves failed in training."""
    generator = torch.Generator().manual_seed(0)
    weight = 0.9 * torch.linalg.qr(torch.randn(24, 24, dtype=torch.float64, generator=generator))[0]
    weight.requires_grad_()
    layer = DEQ(lambda z, x: torch.tanh(z @ weight.mT + x))
    layer(0.3 * torch.randn(16, 24, dtype=torch.float64, generator=generator)).square().sum().backward()
    assert layer.last is not None
    assert layer.last_backward is not None
    assert layer.last.ok
    assert layer.last_backward.ok
    assert int(layer.last_backward.steps.max()) > 60


@pytest.mark.parametrize("solver", [Anderson(tol=1e-6), Broyden(tol=1e-6), Anderson(tol=1e-6, stop="residual")])
def test_the_last_evaluation_of_the_solver_serves_the_backward_pass(cell: TanhCell, x: Tensor, solver: Any) -> None:
    layer = DEQ(cell, solver=solver, backward=Implicit(solver=Anderson(tol=1e-12, max_steps=300)))
    layer(x)  # the first call asks twice whether the cell is a map
    count = [0]
    handle = cell.register_forward_hook(lambda *_: count.__setitem__(0, count[0] + 1))
    given = x.clone().requires_grad_()
    z = layer(given)
    assert layer.last is not None
    assert count[0] == int(layer.last.evaluations.max())
    handle.remove()
    # the graph is that of the equilibrium which is returned, not of the state before it
    image = cell(layer.last.best.requires_grad_(), x)
    jacobian = torch.stack(
        [torch.autograd.grad(image[1, k], layer.last.best, retain_graph=True)[0][1] for k in range(6)]
    )
    (gradient,) = torch.autograd.grad(z[1].sum(), given)
    expected = torch.linalg.solve(torch.eye(6, dtype=x.dtype) - jacobian.mT, torch.ones(6, dtype=x.dtype))
    torch.testing.assert_close(gradient[1], expected, rtol=1e-9, atol=1e-9)


def test_an_adjoint_that_contracts_is_taken_one_step_further(generator: torch.Generator) -> None:
    matrix = 0.5 * torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64))[0]
    layer = DEQ(lambda z, x: z @ matrix.mT + x, backward=Implicit(solver=Anderson(tol=1e-2)))
    x = torch.randn(4, 8, generator=generator, dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x).sum(), x)
    assert layer.last_backward is not None
    found = layer.last_backward.best
    torch.testing.assert_close(gradient, found @ matrix + 1.0, rtol=1e-12, atol=1e-12)
    true = torch.linalg.solve(torch.eye(8, dtype=torch.float64) - matrix.mT, torch.ones(8, dtype=torch.float64))
    off = [float(torch.linalg.vector_norm(part - true)) for part in (gradient, found)]
    assert 0 < off[0] < 0.6 * off[1]  # the matrix shrinks every vector to a half


def test_slow_directions_are_looked_for_at_some_solves_which_the_solution_says() -> None:
    """The first, the second, the fourth and so on, whatever the mode; the others cost as many evaluations less."""
    layer = DEQ(lambda z, x: 0.5 * torch.tanh(z) + x)
    surveyed, evaluations = [], []
    for number in range(1, 10):
        layer.train(number % 3 > 0)
        layer(torch.ones(2, 20))
        assert layer.last is not None
        surveyed.append(layer.last.surveyed.tolist())
        evaluations.append(int(layer.last.evaluations.max()))
    assert [number for number, found in enumerate(surveyed, 1) if found == [True, True]] == [1, 2, 4, 8]
    assert [number for number, found in enumerate(surveyed, 1) if found == [False, False]] == [3, 5, 6, 7, 9]
    assert evaluations[0] > evaluations[2]


def test_a_layer_that_was_refused_once_looks_at_every_solve_until_nothing_is_refused(
    generator: torch.Generator,
) -> None:
    """Else the same input has two answers: the equilibrium, and at the third solve a state far from it."""
    keeps = torch.nn.functional.normalize(torch.randn(32, generator=generator, dtype=torch.float64), dim=0)
    slowness = 1e-7

    def cell(z: Tensor, x: Tensor) -> Tensor:
        along = (z @ keeps).unsqueeze(-1) * keeps
        return 0.4 * torch.tanh(z - along + x) @ outside + along - slowness * (along - 5 * keeps)

    outside = torch.eye(32, dtype=torch.float64) - torch.outer(keeps, keeps)
    layer, x = DEQ(cell), torch.randn(3, 32, generator=generator, dtype=torch.float64)
    for _ in range(3):
        z = layer(x)
        assert layer.last is not None
        assert layer.last.ok
        assert layer.last.surveyed.all()
        assert torch.allclose(z @ keeps, torch.full((3,), 5.0, dtype=torch.float64), rtol=1e-2)
    slowness = 0.5
    looked = []
    for _ in range(6):
        layer(x)
        assert layer.last is not None
        looked.append(bool(layer.last.surveyed.all()))
    assert looked == [True, False, False, False, True, False]  # the fourth and the eighth


def test_a_cell_with_a_hidden_slow_direction_is_not_believed_at_the_first_solve(generator: torch.Generator) -> None:
    """A quantity that the cell keeps but for 1e-6: the residual shows nothing of where it should be."""
    keeps = torch.nn.functional.normalize(torch.randn(32, generator=generator), dim=0)

    def cell(z: Tensor, x: Tensor) -> Tensor:
        along = ((z - 3) @ keeps).unsqueeze(-1) * keeps
        return 3 + 0.4 * torch.tanh(z - 3 - along) + (1 - 1e-6) * along + 0 * x

    layer = DEQ(cell, solver=Picard(max_steps=30), on_fail="return")
    layer(torch.zeros(2, 32))
    assert layer.last is not None
    assert layer.last.n_failed == 2


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_a_layer_in_training_serves_states_whose_squares_are_no_numbers(
    scale: float, generator: torch.Generator
) -> None:
    weight = 0.5 * torch.linalg.qr(torch.randn(4, 4, generator=generator))[0]
    linear = nn.Linear(4, 4, bias=False)
    linear.weight.data.copy_(weight)
    x = (scale * torch.randn(3, 4, generator=generator)).requires_grad_()
    found = DEQ(lambda z, x: linear(z) + x)(x)
    exact = torch.linalg.inv(torch.eye(4) - weight)
    torch.testing.assert_close(found.detach() / scale, x.detach() / scale @ exact.mT, rtol=1e-3, atol=1e-3)
    (gradient,) = torch.autograd.grad(found.sum(), x)
    torch.testing.assert_close(gradient, torch.ones(3, 4) @ exact, rtol=1e-3, atol=1e-3)
