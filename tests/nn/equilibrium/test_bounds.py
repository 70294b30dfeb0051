from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import Anderson, Picard
from separatrix.nn import DEQ, TanhCell, Unrolled, bound_frobenius_norm, bound_row_sums, bound_spectral_norm

NORMS: dict[str, tuple[Callable[..., nn.Module], Callable[[Tensor], Tensor]]] = {
    "frobenius": (lambda layer, bound, generator: bound_frobenius_norm(layer, bound), torch.linalg.matrix_norm),
    "rows": (lambda layer, bound, generator: bound_row_sums(layer, bound), lambda w: w.abs().sum(1).max()),
    "spectral": (
        lambda layer, bound, generator: bound_spectral_norm(layer, bound, generator=generator),
        lambda w: torch.linalg.svdvals(w)[0],
    ),
}


def linear(scale: float, generator: torch.Generator) -> nn.Linear:
    return TanhCell(10, ensemble="gaussian", weight_var=scale**2, generator=generator, dtype=torch.float64).linear


@pytest.mark.parametrize("name", NORMS)
def test_the_norm_stays_at_the_bound_and_smaller_weights_are_left_alone(name: str, generator: torch.Generator) -> None:
    attach, norm = NORMS[name]
    large = attach(linear(3.0, generator), 0.9, generator)
    for _ in range(60):  # power iteration settles
        weight = large.weight.detach()
    assert float(norm(weight)) == pytest.approx(0.9, rel=1e-3)
    small = linear(0.01, generator)
    before = small.weight.detach().clone()
    assert torch.equal(attach(small, 0.9, generator).weight, before)
    ball = large.parametrizations.weight[0]  # type: ignore[union-attr, index]
    assert ball.in_manifold(weight)  # type: ignore[operator]


@pytest.mark.parametrize("name", NORMS)
def test_gradients_flow_through_the_scaling(name: str, generator: torch.Generator) -> None:
    layer = NORMS[name][0](linear(3.0, generator), 0.9, generator).eval()
    free = layer.parametrizations.weight.original  # type: ignore[union-attr]
    weights = torch.randn(10, 10, generator=generator, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((layer.weight * weights).sum(), free)
    # moving along the free matrix changes only its length, which the ball ignores
    assert abs(float((gradient * free.detach()).sum())) < 1e-8 * float(gradient.norm() * free.detach().norm())
    assert float(gradient.norm()) > 0


def test_row_sums_below_one_give_one_equilibrium_to_a_cell_that_would_not_converge(generator: torch.Generator) -> None:
    # s = sign(W s) has no solution for antisymmetric W: whatever the draw, no saturated equilibrium to end in
    cell = TanhCell(10, ensemble="antisymmetric", weight_var=25.0, generator=generator, dtype=torch.float64)
    x = 0.1 * torch.randn(4, 10, generator=generator, dtype=torch.float64)
    wild = DEQ(cell, solver=Picard(tol=1e-8, max_steps=200), on_fail="return")
    wild(x)
    assert wild.last is not None
    assert not wild.last.ok
    bound_row_sums(cell.linear, 0.9)
    DEQ(cell, solver=Picard(tol=1e-8, max_steps=400), on_fail="raise")(x)


@pytest.mark.parametrize("name", [*NORMS, "weight_norm"])
def test_the_bounded_weight_is_computed_once_per_call_and_is_trained(name: str, generator: torch.Generator) -> None:
    cell = TanhCell(10, weight_var=0.5, generator=generator, dtype=torch.float64)
    if name == "weight_norm":
        parametrizations.weight_norm(cell.linear)
    else:
        NORMS[name][0](cell.linear, 0.8, generator)
    calls = []
    cell.linear.parametrizations.weight.register_forward_hook(lambda *_: calls.append(1))  # type: ignore[union-attr, operator]
    x = torch.randn(4, 10, generator=generator, dtype=torch.float64)
    layer = DEQ(cell, solver=Anderson(tol=1e-10)).eval()
    layer(x).pow(2).sum().backward()
    assert len(calls) == 1
    unrolled = DEQ(cell, solver=Anderson(tol=1e-10), backward=Unrolled(steps=150)).eval()
    original = [p for n, p in cell.named_parameters() if "original" in n]
    expected = torch.autograd.grad(unrolled(x).pow(2).sum(), original)
    for parameter, gradient in zip(original, expected, strict=True):
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_an_outer_cache_does_not_lose_the_gradient(generator: torch.Generator) -> None:
    cell = TanhCell(4, weight_var=4.0, generator=generator)
    bound_frobenius_norm(cell.linear, 0.8)
    with parametrize.cached():
        DEQ(cell)(torch.ones(2, 4)).sum().backward()
    gradient = cell.linear.parametrizations.weight.original.grad  # type: ignore[union-attr]
    assert gradient is not None
    assert float(gradient.norm()) > 0


def test_bad_bounds_and_layers_are_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match="bound must be a positive number"):
        bound_row_sums(linear(1.0, generator), 0.0)
    with pytest.raises(ShapeError, match=r"must have a matrix 'weight' \(rows, columns\); got \(3, 2, 1\)"):
        bound_frobenius_norm(nn.Conv1d(2, 3, 1), 1.0)
