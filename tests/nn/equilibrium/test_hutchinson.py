from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from separatrix.core import InvalidInput, SeparatrixError
from separatrix.nn import DEQ, TanhCell, jacobian_penalty
from stranger_operations import OnceTanh


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_the_estimate_is_the_mean_square_singular_value(kind: Any, generator: torch.Generator) -> None:
    cell = TanhCell(12, ensemble="gaussian", weight_var=0.6, generator=generator, dtype=torch.float64)
    z, x = torch.randn(2, 5, 12, generator=generator, dtype=torch.float64)
    slope = 1 - torch.tanh(cell.linear(z)).square()
    jacobian = slope.unsqueeze(-1) * cell.linear.weight
    exact = jacobian.detach().square().sum() / (5 * 12)
    draws = torch.stack(
        [jacobian_penalty(cell, z, x, generator=generator, kind=kind, n_vectors=4).detach() for _ in range(100)]
    )
    assert abs(float(draws.mean() - exact)) < 5 * float(draws.std()) / 10  # five standard errors


def test_penalty_lowers_the_jacobian_when_descended(generator: torch.Generator) -> None:
    cell = TanhCell(12, ensemble="gaussian", weight_var=0.6, generator=generator)
    x = torch.randn(6, 12, generator=generator)
    layer = DEQ(cell)
    before = float(cell.linear.weight.detach().norm())
    optimiser = torch.optim.SGD(cell.parameters(), lr=0.5)
    for _ in range(20):
        optimiser.zero_grad()
        jacobian_penalty(cell, layer(x), x, generator=generator).backward()
        optimiser.step()
    assert float(cell.linear.weight.detach().norm()) < 0.9 * before


def test_structured_states_are_accepted_and_bad_options_refused(generator: torch.Generator) -> None:
    def cell(state: dict[str, torch.Tensor], x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"a": 0.5 * state["b"], "b": 0.5 * state["a"] + x}

    state = {"a": torch.zeros(2, 3), "b": torch.zeros(2, 3)}
    penalty = jacobian_penalty(cell, state, torch.ones(2, 3), generator=generator, kind="rademacher")
    assert float(penalty) == pytest.approx(0.25)
    with pytest.raises(InvalidInput, match=r"unknown kind 'uniform'. Known: gaussian, rademacher"):
        inspect.unwrap(jacobian_penalty)(cell, state, torch.ones(2, 3), generator=generator, kind="uniform")
    with pytest.raises(InvalidInput, match="n_vectors must be an integer of at least 1"):
        jacobian_penalty(cell, state, torch.ones(2, 3), generator=generator, n_vectors=0)


def test_a_penalty_whose_gradient_would_lack_a_part_is_refused(generator: torch.Generator) -> None:
    z, linear = torch.ones(2, 3), torch.nn.Linear(3, 3)
    with pytest.raises(SeparatrixError, match=r"the penalty has no gradient for this cell.*once_differentiable"):
        jacobian_penalty(lambda z, x: OnceTanh.apply(linear(z)), z, None, generator=generator)
    with pytest.raises(InvalidInput, match="the state is detached in it or leaves torch"):
        jacobian_penalty(lambda z, x: torch.tanh(linear(z.detach())), z, None, generator=generator)
    assert jacobian_penalty(lambda z, x: linear(x), z, z, generator=generator).item() == 0.0
