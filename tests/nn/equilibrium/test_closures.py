"""A cell may have any form: what it closes over is found, learns, drops out and is refused as in a module."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations, parametrize

from separatrix.core import InvalidInput, NotConverged, Outcome, SeparatrixError
from separatrix.dynamics import Anderson, Broyden, NewtonKrylov, Picard, find_equilibrium, gmres, spectral_radius
from separatrix.nn import (
    DEQ,
    Exact,
    Implicit,
    Neumann,
    OneStep,
    Phantom,
    Unrolled,
    VariationalDropout,
    bound_frobenius_norm,
    fixed_point_correction,
    modules_used,
)

TIGHT = Anderson(tol=1e-12, max_steps=300)
BACKWARD = [
    Implicit(solver=TIGHT), Exact(), Neumann(terms=60), Phantom(steps=100), OneStep(), Unrolled(steps=60),
]  # fmt: skip


class Parent(nn.Module):
    """A model that makes a layer of its own method."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear
        self.deq = DEQ(self.cell, solver=TIGHT)

    def cell(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(z)) + x

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.deq(x)
        return out


class Cell(nn.Module):
    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(z)) + x

    def method(self, z: Tensor, x: Tensor) -> Tensor:
        return self(z, x)


class Holder:
    def __init__(self, linear: nn.Module) -> None:
        self.parts = {"first": [linear]}

    def __call__(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.parts["first"][0](z)) + x


def applied(linear: nn.Module, z: Tensor, x: Tensor) -> Tensor:
    return torch.tanh(linear(z)) + x


FORMS: dict[str, Callable[[nn.Module], Callable[[Tensor, Tensor], Tensor]]] = {
    "module": Cell,
    "bound method": lambda linear: Cell(linear).method,
    "lambda": lambda linear: lambda z, x: torch.tanh(linear(z)) + x,
    "partial": lambda linear: functools.partial(applied, linear),
    "object": Holder,
    "default value": lambda linear: lambda z, x, linear=linear: torch.tanh(linear(z)) + x,
}


def linear(seed: int = 0) -> nn.Linear:
    made = nn.Linear(4, 4, dtype=torch.float64)
    stream = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        made.weight.copy_(0.5 * torch.linalg.qr(torch.randn(4, 4, generator=stream, dtype=torch.float64))[0])
        made.bias.copy_(0.1 * torch.randn(4, generator=stream, dtype=torch.float64))
    return made


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(3, 4, generator=generator, dtype=torch.float64)


def weight_normalised() -> nn.Module:
    return parametrizations.weight_norm(linear())


def reference(x: Tensor) -> dict[str, Tensor]:
    """Torch's own differentiation through eighty steps."""
    made = weight_normalised()
    z = torch.zeros_like(x)
    for _ in range(80):
        z = torch.tanh(made(z)) + x
    z.pow(3).sum().backward()
    return {name: value.grad for name, value in made.named_parameters() if value.grad is not None}


@pytest.mark.sampled(1, each="form")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backward", BACKWARD, ids=lambda method: type(method).__name__)
def test_parametrised_weights_learn_in_every_form(form: str, backward: Any, x: Tensor) -> None:
    made = weight_normalised()
    DEQ(FORMS[form](made), solver=TIGHT, backward=backward)(x).pow(3).sum().backward()
    for name, expected in reference(x).items():
        found = made.get_parameter(name).grad
        assert found is not None
        if not isinstance(backward, OneStep):
            assert torch.allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_the_parameters_of_a_cell_are_those_of_the_layer(form: str, x: Tensor) -> None:
    made = linear()
    layer = DEQ(FORMS[form](made), solver=TIGHT)
    assert {id(value) for value in layer.parameters()} == {id(value) for value in made.parameters()}
    assert len(layer.state_dict()) == 2
    expected = layer(x)
    parameters = {name: 0.5 * value for name, value in layer.named_parameters()}
    assert not torch.allclose(torch.func.functional_call(layer, parameters, (x,)), expected)


@pytest.mark.parametrize("kind", [weight_normalised, lambda: bound_frobenius_norm(linear(), 0.6)])
def test_a_model_may_make_a_layer_of_its_own_method(kind: Callable[[], nn.Module], x: Tensor) -> None:
    model = Parent(kind())
    names = {name for name, _ in model.named_parameters()}
    assert all(name.startswith("linear.") for name in names)  # no second name by way of the layer
    assert set(model.state_dict()) == names
    model(x).sum().backward()
    assert all(value.grad is not None for value in model.parameters())
    twin = copy.deepcopy(model)
    assert torch.equal(twin(x), model(x))


def test_a_layer_hung_into_the_module_it_uses_does_not_go_in_circles(x: Tensor) -> None:
    cell = Cell(linear())
    cell.deq = DEQ(cell.method, solver=TIGHT)
    cell.deq(x)
    assert len(cell.state_dict()) == 2


made_here = linear(5)
made_global = linear(4)


def test_a_global_module_is_found(x: Tensor) -> None:
    def cell(z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(made_here(z)) + x

    assert modules_used(cell) == [made_here]
    assert len(list(DEQ(cell).parameters())) == 2


def test_a_copy_whose_function_uses_the_original_is_refused(x: Tensor) -> None:
    made = linear(4)
    for cell in (
        lambda z, x: torch.tanh(made_global(z)) + x,
        functools.lru_cache(lambda z, x: torch.tanh(made(z)) + x),
    ):
        with pytest.raises(InvalidInput, match="is a copy, but its cell still uses the modules of the original"):
            copy.deepcopy(DEQ(cell))(x)


class Written(nn.Module):
    """A model that writes the cell of its layer as a function of its own weights, in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.linear = inner = nn.Linear(4, 4)
        self.weight = weight = nn.Parameter(torch.zeros(4, 4))
        parts = [inner]
        ways: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "self": lambda z, x: 0.1 * torch.tanh(self.linear(z)) + x,
            "module": lambda z, x: 0.1 * torch.tanh(inner(z)) + x,
            "parameter": lambda z, x: 0.1 * torch.tanh(z @ weight + weight[0]) + x,
            "list": lambda z, x: 0.1 * torch.tanh(parts[0](z)) + x,
            "default": lambda z, x, linear=inner: 0.1 * torch.tanh(linear(z)) + x,
        }
        plain = ways.get(way, ways["self"])
        ways["function of a function"] = lambda z, x: plain(z, x)
        ways["partial"] = functools.partial(lambda gain, z, x: plain(z, x) * gain, 1.0)
        self.deq = DEQ(ways[way])

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.deq(x)
        return out


WAYS = ["self", "module", "parameter", "list", "default", "function of a function", "partial"]


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_model_uses_and_learns_its_own_weights(way: str, x: Tensor) -> None:
    model = Written(way).double()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for value in twin.parameters():
            value.fill_(0.3)
    assert not torch.allclose(twin(x), model(x))
    twin(x).sum().backward()
    assert all(value.grad is None for value in model.parameters())
    assert any(value.grad is not None for value in twin.parameters())


@pytest.mark.parametrize("form", FORMS)
def test_masks_are_renewed_in_every_form(form: str, x: Tensor, generator: torch.Generator) -> None:
    layer = DEQ(FORMS[form](nn.Sequential(linear(), VariationalDropout(0.5, generator=generator))), solver=TIGHT)
    assert not torch.equal(layer(x), layer(x))


def test_a_weight_cached_without_gradient_is_refused(x: Tensor) -> None:
    made = weight_normalised()
    layer = DEQ(Cell(made), solver=TIGHT)
    with parametrize.cached():
        with torch.no_grad():
            made(x)
        with pytest.raises(SeparatrixError, match="'weight' of ParametrizedLinear was cached without its gradient"):
            layer(x)


def test_unrolled_returns_the_solver_s_point_or_says_why_not(x: Tensor) -> None:
    layer = DEQ(lambda z, x: -1.5 * z + x, solver=TIGHT, backward=Unrolled(steps=100))
    with pytest.raises(SeparatrixError, match="plain steps lead away from the equilibrium"):
        layer(x)
    with torch.no_grad():
        assert torch.allclose(layer(x), x / 2.5)
    few = DEQ(lambda z, x: 0.5 * z + x, solver=TIGHT, backward=Unrolled(steps=3))
    assert torch.allclose(few(x.clone().requires_grad_()), 2 * x)


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        out: Tensor = 0.5 * self.dropout(z) + x
        return out


def test_dropout_of_the_state_is_seen_though_the_start_is_zero(x: Tensor) -> None:
    with pytest.raises(InvalidInput, match="gave two different results"):
        DEQ(Dropping())(x)


@pytest.mark.filterwarnings("ignore::separatrix.core.ConvergenceWarning")
def test_dropout_that_is_switched_on_later_is_seen_too(x: Tensor) -> None:
    cell = Dropping()
    layer = DEQ(cell)
    cell.dropout.p = 0.0
    layer(x)
    cell.dropout.p = 0.5
    with pytest.raises(InvalidInput, match="gave two different results"):
        layer(x.clone().requires_grad_())


def test_batch_statistics_are_refused_and_left_alone(x: Tensor) -> None:
    norm = nn.BatchNorm1d(4, dtype=torch.float64)
    layer = DEQ(lambda z, x: 0.3 * norm(z) + x)
    with pytest.raises(InvalidInput, match=r"the cell uses BatchNorm1d with statistics of the batch.*nn.LayerNorm"):
        layer(x)
    assert float(norm.running_mean.abs().max()) == 0.0
    norm.eval()
    layer(x)
    model = Parent(linear())
    model.head = nn.BatchNorm1d(4, dtype=torch.float64)  # beside the cell, not in it
    model(x)


def test_what_is_frozen_has_no_gradient(x: Tensor) -> None:
    made = linear().requires_grad_(False)
    for backward in BACKWARD:
        assert not DEQ(Cell(made), solver=TIGHT, backward=backward)(x).requires_grad
    assert DEQ(Cell(made), solver=TIGHT)(x.clone().requires_grad_()).requires_grad
    assert DEQ(Cell(made), solver=TIGHT)((x.clone().requires_grad_() * 2).exp()).requires_grad


def test_a_cell_that_returns_what_it_was_given_still_has_its_gradient(x: Tensor) -> None:
    """Its image is no result of a computation: it has no graph, and is the leaf itself."""
    given, bias = x.clone().requires_grad_(), nn.Parameter(torch.ones_like(x))
    for backward in BACKWARD:
        for leaf, cell in ((given, lambda z, x: x), (bias, lambda z, x: bias)):
            (gradient,) = torch.autograd.grad(DEQ(cell, solver=TIGHT, backward=backward)(given).sum(), leaf)
            assert torch.equal(gradient, torch.ones_like(x))
        with pytest.raises(RuntimeError, match="does not require grad"):
            DEQ(lambda z, x: z, solver=TIGHT, backward=backward, on_fail="return")(x).sum().backward()


def test_dictionaries_are_known_by_their_keys_and_features_are_needed(x: Tensor) -> None:
    start = {"a": torch.zeros(3, 4, dtype=torch.float64), "b": torch.zeros(3, 4, dtype=torch.float64)}
    turned = DEQ(lambda s, x: {"b": 0.5 * s["b"] + 1, "a": 0.5 * s["a"] + x}, solver=TIGHT, initial=lambda x: start)
    assert torch.allclose(turned(x)["a"], 2 * x)
    ordered = DEQ(
        lambda s, x: OrderedDict(b=0.5 * s["b"] + 1, a=0.5 * s["a"] + x), initial=lambda x: OrderedDict(start)
    )(x)
    assert isinstance(ordered, OrderedDict)
    assert list(ordered) == ["a", "b"]
    with pytest.raises(InvalidInput, match=r"shapes \{'a': \(3, 4\), 'b': \(3, 4\)\}; it returned shapes \{'a'"):
        DEQ(lambda s, x: {"a": s["a"], "c": s["b"]}, initial=lambda x: start)(x)
    with pytest.raises(InvalidInput, match=r"at least one feature; got shapes \[\(3, 0\)\]"):
        DEQ(lambda z, x: z)(x[:, :0])


def test_second_derivatives_are_those_of_the_equilibrium(x: Tensor) -> None:
    weight = linear().weight.detach()[:2, :2].clone().requires_grad_()

    def output(x: Tensor, weight: Tensor) -> Tensor:
        backward = Implicit(solver=TIGHT, second_order=True)
        out: Tensor = DEQ(lambda z, x: torch.tanh(z @ weight.mT) + x, solver=TIGHT, backward=backward)(x)
        return out

    inputs = (x[:1, :2].clone().requires_grad_(), weight)
    assert torch.autograd.gradcheck(output, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(output, inputs, fast_mode=True)
    (first,) = torch.autograd.grad(output(*inputs).pow(3).sum(), weight, create_graph=True)
    with pytest.raises(SeparatrixError, match=r"(first and second derivatives only|no second derivative)"):
        torch.autograd.grad(first.pow(2).sum(), weight, create_graph=True)


def test_any_linear_solver_may_solve_the_adjoint_equation_and_is_checked(x: Tensor) -> None:
    def dense(operator: Callable[[Tensor], Tensor], rhs: Tensor) -> Tensor:
        return gmres(operator, rhs, torch.full(rhs.shape[:1], 1e-12, dtype=rhs.dtype), rhs.shape[1])

    made = linear()
    found = []
    for backward in (Implicit(linear_solver=dense), Implicit(solver=TIGHT)):
        made.zero_grad()
        layer = DEQ(Cell(made), solver=TIGHT, backward=backward, on_fail="raise")
        layer(x).pow(3).sum().backward()
        assert layer.last_backward is not None
        assert made.weight.grad is not None
        found.append(made.weight.grad.clone())
    assert torch.allclose(*found)
    careless = DEQ(Cell(made), solver=TIGHT, backward=Implicit(linear_solver=lambda op, rhs: rhs), on_fail="raise")
    with pytest.raises(NotConverged, match="backward pass: 3 of 3"):
        careless(x).sum().backward()


def test_auxiliary_output_is_that_of_the_equilibrium(x: Tensor) -> None:
    made = linear()
    layer = DEQ(lambda z, x: (torch.tanh(made(z)) + x, {"norm": z.norm(dim=1)}), solver=TIGHT, has_aux=True)
    z, aux = layer(x)
    assert torch.allclose(aux["norm"], z.norm(dim=1))
    aux["norm"].sum().backward()
    expected = made.weight.grad
    made.zero_grad()
    DEQ(Cell(made), solver=TIGHT)(x).norm(dim=1).sum().backward()
    assert expected is not None
    assert made.weight.grad is not None
    assert torch.allclose(expected, made.weight.grad)
    with pytest.raises(InvalidInput, match=r"must return a pair \(state, aux\); it returned Tensor"):
        DEQ(Cell(made), has_aux=True)(x)


def test_states_on_the_way_are_returned_and_learn(x: Tensor) -> None:
    made = linear()
    layer = DEQ(Cell(made), solver=Picard(tol=1e-10, max_steps=60), indexing=(2, 5))
    states = layer(x)
    assert len(states) == 3
    z = torch.zeros_like(x)
    for _ in range(2):  # step two looks at the first image, and its state is one step further
        z = torch.tanh(made(z)) + x
    assert torch.allclose(states[0], z)
    distances = [float((state - states[-1]).detach().norm()) for state in states]
    assert distances[0] > distances[1] > distances[2] == 0
    fixed_point_correction(lambda z: z.square().mean(), states[:-1]).backward()
    assert made.weight.grad is not None
    assert len(DEQ(Cell(made), solver=Picard(max_steps=60), indexing=4)(x)) == 4


def test_evaluation_has_its_own_budget(x: Tensor) -> None:
    layer = DEQ(Cell(linear()), solver=Picard(tol=1e-3), eval_solver=Picard(tol=1e-10), on_fail="raise")
    layer(x)
    assert layer.last is not None
    trained = int(layer.last.steps.max())
    layer.eval()(x)
    assert int(layer.last.steps.max()) > 2 * trained


@pytest.mark.slow
def test_a_layer_of_fused_attention_has_forward_derivatives(generator: torch.Generator) -> None:
    x = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)

    def cell(z: Tensor, x: Tensor) -> Tensor:
        return 0.4 * functional.scaled_dot_product_attention(z, z, z) + x

    for solver in (TIGHT, NewtonKrylov(tol=1e-11)):
        layer = DEQ(cell, solver=solver, backward=Implicit(solver=TIGHT))
        direction = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
        _, tangent = torch.func.jvp(layer, (x,), (direction,))
        step = 1e-6
        quotient = (layer(x + step * direction) - layer(x - step * direction)) / (2 * step)
        assert torch.allclose(tangent, quotient.detach(), atol=1e-7)


def test_default_backward_solves_reach_their_tolerance_in_single_precision(generator: torch.Generator) -> None:
    cell = nn.Linear(64, 64)
    with torch.no_grad():
        cell.weight.copy_(0.9 * torch.linalg.qr(torch.randn(64, 64, generator=generator))[0])
    layer = DEQ(lambda z, x: torch.tanh(cell(z)) + x, on_fail="raise")
    for _ in range(20):
        x = torch.randn(32, 64, generator=generator)
        layer(x).square().mean().backward()
        assert layer.last is not None
        assert layer.last.ok
        assert layer.last_backward is not None
        assert layer.last_backward.ok


def test_half_precision_stalls_no_layer_at_its_default(generator: torch.Generator) -> None:
    cell = nn.Linear(16, 16, bias=False).to(torch.bfloat16)
    with torch.no_grad():
        cell.weight.copy_(0.4 * torch.linalg.qr(torch.randn(16, 16, generator=generator))[0])
    layer = DEQ(lambda z, x: torch.tanh(cell(z)) + x, on_fail="raise")
    layer(torch.randn(8, 16, generator=generator).to(torch.bfloat16)).float().sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tight = DEQ(lambda z, x: torch.tanh(cell(z)) + x, solver=Broyden(tol=1e-6), on_fail="return")
        tight(torch.randn(8, 16, generator=generator).to(torch.bfloat16))
    assert tight.last is not None
    assert set(tight.last.outcomes()) == {Outcome.STALLED}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # the compiler looks at non-leaf tensors
def test_a_compiled_layer_runs_as_it_is(x: Tensor) -> None:
    layer = DEQ(Cell(linear()), solver=TIGHT)
    compiled = torch.compile(layer, backend="eager")
    assert torch.allclose(compiled(x), layer(x))


def test_a_layer_is_not_recorded(x: Tensor) -> None:
    """A recording would take the steps of its example for every input."""
    layer = DEQ(Cell(linear()), solver=TIGHT)
    with pytest.raises(InvalidInput, match="as many steps as its input asks for"):
        torch.jit.trace(layer, x, check_trace=False)
    for whole in (layer, nn.Sequential(linear(), layer)):
        with pytest.raises(InvalidInput, match="as many steps as its input asks for"):
            torch.jit.script(whole)
    # torch 2.6 stops in front of our sentence, at a function that it will not follow
    with pytest.raises(Exception, match=r"as many steps as its input asks for|skipfiles|skip function"):
        torch.export.export(layer, (x,))


class Apart(nn.Module):
    """A cell whose graph does not have the state, and whose values do."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.linear(z.detach())) + x


def test_the_gradient_of_a_cell_that_detaches_its_state_is_refused_unless_asked_for(x: Tensor) -> None:
    for backward in (Implicit(), Exact(), Neumann()):
        layer = DEQ(Apart(linear()), backward=backward)
        with pytest.raises(InvalidInput, match="the state is detached in it or leaves torch"):
            layer(x).sum().backward()
    DEQ(Apart(linear()), backward=OneStep())(x).sum().backward()
    made = linear()
    DEQ(lambda z, x: torch.tanh(made(x)))(x).sum().backward()  # without a state there is nothing to be lost
    assert made.weight.grad is not None


def test_functions_are_not_replicated_for_several_devices(x: Tensor) -> None:
    made = linear()
    for layer in (DEQ(lambda z, x: torch.tanh(made(z)) + x), Parent(linear()).deq):
        with pytest.raises(InvalidInput, match="DataParallel cannot replicate this layer"):
            layer._replicate_for_data_parallel()
    assert isinstance(DEQ(Cell(linear()))._replicate_for_data_parallel(), DEQ)


def test_states_without_numbers_are_named() -> None:
    layer = DEQ(lambda z, x: 0.5 * z + x)
    ragged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    for state, words in (
        (torch.zeros(2, 3, device="meta"), "must hold numbers; got a tensor on the meta device"),
        (ragged, "must be a dense tensor; got a nested one"),
        (torch.eye(3).to_sparse(), "must be a dense tensor; got a sparse_coo one"),
    ):
        for call in (
            layer,
            lambda z: find_equilibrium(torch.cos, Picard(), z),
            lambda z: spectral_radius(torch.cos, z),
        ):
            with pytest.raises(InvalidInput, match=words):
                call(state)


def test_an_exact_gradient_where_there_is_none_is_refused_in_words(x: Tensor) -> None:
    layer = DEQ(lambda z, x: z + x.sign(), backward=Exact(), on_fail="return")
    with pytest.raises(SeparatrixError, match=r"I - J is singular at the state of a sample"):
        layer(x.clone().requires_grad_()).sum().backward()
