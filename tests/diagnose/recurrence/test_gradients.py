from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.diagnose import recurrent


def test_gradients_of_a_loss_are_those_of_autograd(generator: torch.Generator) -> None:
    """A loss on every step: the adjoint recursion against backward through the unrolled cell."""
    cell, steps = nn.GRUCell(3, 5, dtype=torch.float64), 25
    x = torch.randn(1, steps, 3, generator=generator, dtype=torch.float64)
    weight = torch.randn(1, steps, 5, generator=generator, dtype=torch.float64)
    states = [torch.zeros(1, 5, dtype=torch.float64)]
    for step in range(steps):
        after = cell(x[:, step], states[-1])
        after.retain_grad()
        states.append(after)
    sum((weight[:, step] * states[step + 1]).sum() for step in range(steps)).backward()  # type: ignore[union-attr]
    expected = [float(torch.linalg.vector_norm(state.grad).log()) for state in reversed(states[1:])]  # type: ignore[arg-type]
    flow = recurrent(cell, x, direct=weight).layers[0].gradients
    assert flow is not None
    assert flow.of_loss
    assert flow.log_norms.tolist() == pytest.approx(expected, abs=1e-10)


def test_products_are_those_of_the_jacobians(generator: torch.Generator) -> None:
    rnn = nn.RNN(2, 4, batch_first=True, dtype=torch.float64)
    x = torch.randn(1, 30, 2, generator=generator, dtype=torch.float64)
    states = torch.cat([torch.zeros(1, 4, dtype=torch.float64), rnn(x)[0][0].detach()])
    product = torch.eye(4, dtype=torch.float64)
    logs = []
    for step in range(10, 30):
        product = (1 - states[step + 1] ** 2)[:, None] * rnn.weight_hh_l0.detach() @ product
        logs.append(float(torch.linalg.matrix_norm(product, 2).log()))
    flow = recurrent(rnn, x).layers[0].gradients
    assert flow is not None
    kept = [logs[lag - 1] for lag in flow.product_lags.tolist()]
    assert flow.product_log_norms.tolist() == pytest.approx(kept, abs=1e-10)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_logarithms_neither_overflow_nor_vanish(factor: float) -> None:
    matrix = factor * torch.eye(2, dtype=torch.float64)

    def step(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return x + torch.tanh(h @ matrix.mT - (h @ matrix.mT).detach())  # slope one at every state

    def linear(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return step(x, h) - h.detach() * 0

    found = recurrent(linear, torch.zeros(1, 200, 2), states=torch.zeros(1, 2, dtype=torch.float64)).layers[0].gradients
    assert found is not None
    slope = float(torch.tensor(factor).double().log())
    assert float(found.log_norms[-1] - found.log_norms[0]) == pytest.approx(199 * slope, rel=1e-9)
    assert abs(199 * slope) > 2000
