"""What every way to differentiate through an equilibrium promises.

A method is one line in ``METHODS``: the object, and the relative error of the gradient that it claims on a cell that
contracts by one half. The two strangers are written from the notes to implementers in ``AbstractBackward`` and
``AbstractLinearBackward`` alone. The reference is torch's own differentiation through sixty plain steps.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput
from separatrix.dynamics import Anderson, EquilibriumSolution
from separatrix.nn import (
    DEQ,
    AbstractBackward,
    AbstractLinearBackward,
    Exact,
    Implicit,
    Neumann,
    OneStep,
    Phantom,
    Unrolled,
    backward_methods,
)

TIGHT = Anderson(tol=1e-12, max_steps=300)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Richardson(AbstractLinearBackward):
    """A stranger's solve of the adjoint equation: damped steps, whatever comes."""

    steps: int = 30

    def solve(
        self, linear: Callable[[Tensor], Tensor], rhs: Tensor, report: Callable[[EquilibriumSolution], None]
    ) -> Tensor:
        v = rhs
        for _ in range(self.steps):
            v = 0.2 * v + 0.8 * (linear(v) + rhs)
        return v


@dataclasses.dataclass(frozen=True, kw_only=True)
class Continued(AbstractBackward):
    """A stranger's way without a linear equation: go on for some steps from the equilibrium, with their graph."""

    steps: int = 40

    def attach(
        self,
        packed_map: Callable[[Tensor], Tensor],
        z_star: Tensor,
        z0: Tensor,
        report: Callable[[EquilibriumSolution], None],
    ) -> Tensor:
        z = z_star
        for _ in range(self.steps):
            z = packed_map(z)
        return z


METHODS: dict[str, tuple[AbstractBackward, float]] = {
    "implicit": (Implicit(solver=TIGHT), 1e-9),
    "implicit by name": (Implicit(solver="broyden"), 1e-5),
    "exact": (Exact(), 1e-9),
    "unrolled": (Unrolled(steps=40), 1e-9),
    "neumann": (Neumann(terms=40), 1e-9),
    "neumann, five terms": (Neumann(), 0.05),  # one half to the power six, and the slope of tanh
    "phantom": (Phantom(steps=80), 1e-9),
    "phantom, five steps": (Phantom(), 0.5),
    "one step": (OneStep(), 0.8),
    "stranger: Richardson": (Richardson(), 1e-9),
    "stranger: continued": (Continued(), 1e-9),
}


pytestmark = pytest.mark.sampled(4, across="entry")


@pytest.fixture(params=METHODS)
def entry(request: pytest.FixtureRequest) -> tuple[AbstractBackward, float]:
    return METHODS[request.param]


class Cell(nn.Module):
    """z -> tanh(W z + U x), W one half times an orthogonal matrix."""

    def __init__(self, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        draw = torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
        self.weight = nn.Parameter((0.5 * torch.linalg.qr(draw[0])[0]).to(dtype))
        self.inject = nn.Parameter(draw[1].to(dtype))

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(z @ self.weight + x @ self.inject)

    def method(self, z: Tensor, x: Tensor) -> Tensor:
        return self(z, x)


@pytest.fixture
def cell(generator: torch.Generator) -> Cell:
    return Cell(generator)


@pytest.fixture
def x(generator: torch.Generator) -> Tensor:
    return torch.randn(3, 5, generator=generator, dtype=torch.float64)


def same(weight: Tensor, inject: Tensor, z: Tensor, x: Tensor) -> Tensor:
    """The cell's formula as a plain function."""
    return torch.tanh(z @ weight + x @ inject)


class Holder:
    """No module, but callable."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def __call__(self, z: Tensor, x: Tensor) -> Tensor:
        return same(self.cell.weight, self.cell.inject, z, x)


class Outer(nn.Module):
    """The cell one level down."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.inner = cell

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        out: Tensor = self.inner(z, x)
        return out


FORMS: dict[str, Callable[[Cell], Callable[[Tensor, Tensor], Tensor]]] = {
    "module": lambda cell: cell,
    "module in a module": Outer,
    "closure over parameters": lambda cell: lambda z, x: same(cell.weight, cell.inject, z, x),
    "closure over a module": lambda cell: lambda z, x: cell(z, x),
    "closure over a tensor made of parameters": lambda cell: functools.partial(same, 1.0 * cell.weight, cell.inject),
    "bound method": lambda cell: cell.method,
    "callable object": Holder,
}


def gradients(layer: Callable[[Tensor], Tensor], cell: Cell, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    return list(torch.autograd.grad(layer(x).pow(3).sum(), [x, cell.weight, cell.inject]))


def reference(cell: Cell, x: Tensor) -> list[Tensor]:
    """Ordinary differentiation through sixty steps: one half to that power is below rounding."""

    def unrolled(x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(60):
            z = cell(z, x)
        return z

    return gradients(unrolled, cell, x)


def test_every_public_method_is_entered() -> None:
    entered = {type(method) for method, _ in METHODS.values()}
    assert entered >= set(backward_methods().values())


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_as_exact_as_claimed(
    entry: tuple[AbstractBackward, float], form: str, cell: Cell, x: Any
) -> None:
    method, claimed = entry
    found = gradients(DEQ(FORMS[form](cell), solver=TIGHT, backward=method), cell, x)
    for ours, exact in zip(found, reference(cell, x), strict=True):
        assert float((ours - exact).norm() / exact.norm()) <= claimed


def test_dense_implicit_function_theorem_gives_the_reference(cell: Cell, x: Tensor) -> None:
    """The sixty steps themselves, checked by dz/dx = (I - J)^-1 df/dx with dense matrices."""
    z = DEQ(cell, solver=TIGHT)(x).detach()
    for row in range(len(x)):
        by_state = torch.autograd.functional.jacobian(lambda z, row=row: cell(z, x[row]), z[row])
        by_input = torch.autograd.functional.jacobian(lambda x, row=row: cell(z[row], x), x[row])
        total = torch.linalg.solve(torch.eye(5, dtype=z.dtype) - by_state, by_input)
        assert torch.allclose(3 * z[row].square() @ total, reference(cell, x)[0][row], atol=1e-10)


def test_the_output_is_the_equilibrium(entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor) -> None:
    z = DEQ(cell, solver=TIGHT, backward=entry[0])(x)
    assert z.requires_grad
    assert z.dtype == x.dtype
    assert torch.allclose(z, cell(z, x), atol=1e-10)


def test_without_gradients_nothing_is_attached(entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor) -> None:
    layer = DEQ(cell, solver=TIGHT, backward=entry[0])
    with torch.no_grad():
        z = layer(x)
    assert not z.requires_grad
    assert layer.last is not None
    assert torch.equal(z, layer.last.value)
    with torch.inference_mode():
        assert torch.equal(layer(x), z)


def test_a_frozen_cell_still_passes_the_gradient_of_its_input(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    method, claimed = entry
    expected = reference(cell, x)[0]
    x = x.requires_grad_()
    (found,) = torch.autograd.grad(DEQ(cell.requires_grad_(False), solver=TIGHT, backward=method)(x).pow(3).sum(), x)
    assert float((found - expected).norm() / expected.norm()) <= claimed


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_have_the_type_of_their_parameters(
    entry: tuple[AbstractBackward, float], dtype: torch.dtype, generator: torch.Generator
) -> None:
    method, claimed = entry
    cell = Cell(generator, dtype)
    x = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    found = gradients(DEQ(cell, solver=Anderson(tol=1e-6), backward=method, on_fail="return"), cell, x.to(dtype))
    assert {gradient.dtype for gradient in found} == {dtype}
    for ours, exact in zip(found, reference(cell.double(), x), strict=True):
        assert float((ours - exact).norm() / exact.norm()) <= max(claimed, 1e-4)


def test_a_sample_s_gradient_does_not_feel_the_batch(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    layer = DEQ(cell, solver=TIGHT, backward=entry[0])
    other = torch.cat([x[:1], 30 * x[1:], x])
    assert torch.allclose(gradients(layer, cell, other)[0][0], gradients(layer, cell, x)[0][0], rtol=1e-9, atol=1e-12)


def test_gradients_add_up_over_calls_and_can_be_asked_for_again(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    layer = DEQ(cell, solver=TIGHT, backward=entry[0])
    first, second = layer(x), layer(-2 * x)
    loss = first.sum() + second.square().sum()
    loss.backward(retain_graph=True)
    assert cell.weight.grad is not None
    once = cell.weight.grad.clone()
    loss.backward()
    assert torch.allclose(cell.weight.grad, 2 * once)
    alone = [torch.autograd.grad(layer(x).sum(), cell.weight)[0]]
    alone += [torch.autograd.grad(layer(-2 * x).square().sum(), cell.weight)[0]]
    assert torch.allclose(once, alone[0] + alone[1], rtol=1e-8)


def test_states_of_several_tensors_are_differentiated(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    method, claimed = entry

    def pair(state: tuple[Tensor, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        image = cell(torch.cat(state, dim=1), x)
        return image[:, :2], image[:, 2:]

    layer = DEQ(pair, solver=TIGHT, backward=method, initial=lambda x: (x[:, :2] * 0, x[:, 2:] * 0))
    found = gradients(lambda x: torch.cat(layer(x), dim=1), cell, x)
    for ours, exact in zip(found, reference(cell, x), strict=True):
        assert float((ours - exact).norm() / exact.norm()) <= claimed


@pytest.mark.sampled(4)
def test_torch_func_gives_the_same_gradient(entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor) -> None:
    layer = DEQ(cell, solver=TIGHT, backward=entry[0])

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(layer, parameters, (x,))
        return out.pow(3).sum()

    by_parameters, by_input = torch.func.grad(loss, argnums=(0, 1))(dict(layer.named_parameters()), x)
    expected = gradients(layer, cell, x)
    assert torch.allclose(by_input, expected[0], rtol=1e-8, atol=1e-12)
    assert torch.allclose(by_parameters["cell.weight"], expected[1], rtol=1e-8, atol=1e-12)


def test_parametrised_weights_of_the_layer_get_their_gradient(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    class Doubled(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return 2 * weight

        def right_inverse(self, weight: Tensor) -> Tensor:
            return weight / 2

    method, claimed = entry
    expected = reference(cell, x)[1]
    nn.utils.parametrize.register_parametrization(cell, "weight", Doubled())
    DEQ(cell, solver=TIGHT, backward=method)(x).pow(3).sum().backward()
    found = cell.parametrizations.weight.original.grad
    assert found is not None
    assert float((found - 2 * expected).norm() / expected.norm()) <= 2 * claimed


def test_neither_the_global_generator_nor_the_start_is_touched(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    start, state = torch.full_like(x, 0.1), torch.get_rng_state()
    before = start.clone()
    DEQ(cell, solver=TIGHT, backward=entry[0])(x, start).sum().backward()
    assert torch.equal(start, before)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_layer_with_it_can_be_copied_printed_and_pickled(
    entry: tuple[AbstractBackward, float], cell: Cell, x: Tensor
) -> None:
    layer = DEQ(cell, solver=TIGHT, backward=entry[0])
    expected = gradients(layer, cell, x)[0]
    assert type(entry[0]).__name__ in str(layer)
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer.backward))):
        twin = twin if isinstance(twin, DEQ) else DEQ(cell, solver=TIGHT, backward=twin)
        y = x.clone().requires_grad_()
        assert torch.equal(torch.autograd.grad(twin(y).pow(3).sum(), y)[0], expected)


def test_methods_are_frozen_and_refuse_unknown_options(entry: tuple[AbstractBackward, float]) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry[0].no_such_option = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="no_such_option"):
        type(entry[0])(no_such_option=1)


@pytest.mark.parametrize("name", backward_methods())
def test_a_method_may_be_named(name: str, cell: Cell, x: Tensor) -> None:
    kind = backward_methods()[name]
    named, given = DEQ(cell, backward=name), DEQ(cell, backward=kind())
    assert named.backward == given.backward
    assert torch.equal(gradients(named, cell, x)[1], gradients(given, cell, x)[1])


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InvalidInput, match=r"unknown backward method 'implict'\. Did you mean 'implicit'\?"):
        DEQ(lambda z, x: z, backward="implict")
    with pytest.raises(InvalidInput, match=r"unknown solver 'andersen'\. Did you mean 'anderson'\?"):
        Implicit(solver="andersen")
    with pytest.raises(TypeError, match=r"unknown option of Neumann 'term'\. Did you mean 'terms'\?"):
        Neumann(term=3)  # type: ignore[call-arg]
