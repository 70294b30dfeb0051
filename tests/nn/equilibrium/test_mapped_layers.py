"""Equilibrium layers inside ``torch.func.vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import NotConverged, SeparatrixError
from separatrix.dynamics import Anderson, solvers
from separatrix.nn import DEQ, Implicit, TanhCell

SOLVERS = list(solvers().values())


@pytest.fixture
def inputs(generator: torch.Generator) -> Tensor:
    return torch.randn(4, 3, 6, generator=generator, dtype=torch.float64)


@pytest.fixture
def cell(generator: torch.Generator) -> TanhCell:
    return TanhCell(6, ensemble="haar", weight_var=0.5, generator=generator, dtype=torch.float64)


def tight(cell: Callable[..., Any], solver: Callable[..., Any] = Anderson, **options: Any) -> DEQ:
    exact = solver(tol=1e-11, max_steps=300)
    return DEQ(cell, solver=exact, backward=Implicit(solver=exact), **options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_gradients_per_sample_are_those_of_each_alone(solver: Any, cell: TanhCell, inputs: Tensor) -> None:
    layer, inputs = tight(cell, solver), inputs[:2]
    parameters = {name: value.detach() for name, value in layer.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(layer, parameters, (x,)).sin().sum()

    together = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, inputs)
    for k, x in enumerate(inputs):
        alone = torch.func.grad(loss)(parameters, x)
        for name in alone:
            torch.testing.assert_close(together[name][k], alone[name], atol=1e-9, rtol=0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_ensemble_of_parameters_shares_its_input(solver: Any, cell: TanhCell, inputs: Tensor) -> None:
    layer = tight(cell, solver)
    scales = (1.0, 0.7, 0.2)
    members = {
        name: torch.stack([scale * value.detach() for scale in scales]) for name, value in layer.named_parameters()
    }

    def output(parameters: dict[str, Tensor]) -> Tensor:
        result: Tensor = torch.func.functional_call(layer, parameters, (inputs[0],))
        return result

    mapped = torch.func.vmap(output)(members)
    alone = [output({name: value[k] for name, value in members.items()}) for k in range(len(scales))]
    torch.testing.assert_close(mapped, torch.stack(alone), atol=1e-9, rtol=0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("transform", [torch.func.jacrev, torch.func.jacfwd])
def test_jacobians_of_either_mode_agree_with_autograd(transform: Any, cell: TanhCell, inputs: Tensor) -> None:
    layer = tight(cell)
    expected = torch.autograd.functional.jacobian(layer, inputs[0])
    torch.testing.assert_close(transform(layer)(inputs[0]), expected, atol=1e-9, rtol=0)


def test_a_member_that_fails_leaves_the_others_right_and_is_told(cell: TanhCell, inputs: Tensor) -> None:
    inputs[1, 0] = torch.nan
    with torch.no_grad():
        mapped = torch.func.vmap(tight(cell, on_fail="return"))(inputs)
        alone = torch.stack([tight(cell, on_fail="return")(x) for x in inputs])
        torch.testing.assert_close(mapped, alone, atol=1e-9, rtol=0, equal_nan=True)
        with pytest.raises(NotConverged, match=r"1 of 12 solves did not converge \(non finite"):
            torch.func.vmap(tight(cell, on_fail="raise"))(inputs)


def test_a_derivative_outside_of_vmap_raises_instead_of_being_zero(cell: TanhCell, inputs: Tensor) -> None:
    layer = tight(cell)
    with pytest.raises(SeparatrixError, match="take the derivative inside vmap"):
        torch.func.vmap(layer)(inputs).sum().backward()
    with pytest.raises(SeparatrixError, match="take the derivative inside vmap"):
        torch.func.grad(lambda x: torch.func.vmap(layer)(x).sum())(inputs)


class FusedAttention(nn.Module):
    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8, generator=generator, dtype=torch.float64) / 8**0.5)

    def forward(self, z: Tensor, x: Tensor) -> Tensor:
        h = z @ self.weight.T
        return 0.3 * nn.functional.scaled_dot_product_attention(h, h, h) + x


def test_forward_derivatives_pass_through_fused_attention(generator: torch.Generator) -> None:
    layer = DEQ(FusedAttention(generator), solver=Anderson(tol=1e-10), backward=Implicit(solver=Anderson(tol=1e-10)))
    x, direction = torch.randn(2, 2, 1, 4, 8, generator=generator, dtype=torch.float64)  # with an axis of heads
    tangent = torch.func.jvp(layer, (x,), (direction,))[1]
    with torch.no_grad():
        differences = (layer(x + 1e-4 * direction) - layer(x - 1e-4 * direction)) / 2e-4
    torch.testing.assert_close(tangent, differences, rtol=1e-5, atol=1e-6)
