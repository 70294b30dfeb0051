"""Each core against its formula, written down once more from the document or article."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from separatrix import nn as layers
from separatrix.core import InvalidInput, spawn

X = torch.randn(2, 7, 3, dtype=torch.float64, generator=spawn(0, "x"))


def scattered(core: nn.Module) -> nn.Module:
    with torch.no_grad():
        for index, parameter in enumerate(core.parameters()):
            parameter.add_(0.2 * torch.randn(parameter.shape, dtype=torch.float64, generator=spawn(index, "scatter")))
    return core.eval()


def test_the_linear_unit_is_a_sum_over_the_past() -> None:
    core = scattered(layers.LRU(3, 4, dtype=torch.float64))
    factor = core.eigenvalues()  # type: ignore[operator]
    entering = torch.complex(*core.input_weight) * (1 - factor.abs() ** 2).sqrt().unsqueeze(1)  # type: ignore[misc]
    expected = torch.zeros(2, 4, dtype=torch.complex128)
    for t in range(7):
        expected += factor ** (6 - t) * (X[:, t].to(torch.complex128) @ entering.mT)
    assert torch.allclose(core(X)[1][0], expected, atol=1e-12)


def test_white_input_gives_states_of_unit_variance() -> None:
    core = layers.LRU(1, 6, r_min=0.2, r_max=0.7, dtype=torch.float64)
    with torch.no_grad():
        core.input_weight.zero_()
        core.input_weight[0] = 1.0
    noise = torch.randn(1, 40000, 1, dtype=torch.float64, generator=spawn(0, "noise"))
    states = core.trace(noise).states[0, 100:].detach()
    variance = states.abs().square().mean(0)
    assert float((variance - 1).abs().max()) < 0.06  # five standard errors of correlated samples


def test_the_moduli_of_the_linear_unit_stay_below_one() -> None:
    core = layers.LRU(2, 50)
    assert 0.9 <= float(core.eigenvalues().abs().min()) < float(core.eigenvalues().abs().max()) <= 0.999
    with torch.no_grad():
        core.log_decay.add_(50 * torch.randn(50, generator=spawn(0, "decay")))
    assert float(core.eigenvalues().abs().max()) <= 1
    with pytest.raises(InvalidInput, match="0 <= r_min < r_max < 1"):
        layers.LRU(2, 4, r_min=0.9, r_max=1.0)


def test_the_minimal_gated_unit() -> None:
    core = scattered(layers.MinGRU(3, 4, dtype=torch.float64))
    h = torch.zeros(2, 4, dtype=torch.float64)
    for t in range(7):
        gate, candidate = (X[:, t] @ core.input_weight.mT + core.bias).chunk(2, -1)  # type: ignore[operator, union-attr]
        z = torch.sigmoid(gate)
        h = (1 - z) * h + z * candidate
    assert torch.allclose(core(X)[1][0], h, atol=1e-12)


def test_the_antisymmetric_network() -> None:
    core = scattered(layers.AntisymmetricRNN(3, 4, step_size=0.1, damping=0.05, dtype=torch.float64))
    w = torch.zeros(4, 4, dtype=torch.float64)
    w[torch.triu_indices(4, 4, 1).unbind(0)] = core.entries.detach()  # type: ignore[union-attr, operator]
    flow = w - w.mT - 0.05 * torch.eye(4, dtype=torch.float64)
    h = torch.zeros(2, 4, dtype=torch.float64)
    for t in range(7):
        h = h + 0.1 * torch.tanh(h @ flow.mT + X[:, t] @ core.input_weight.mT + core.bias)  # type: ignore[operator, union-attr]
    assert torch.allclose(core(X)[1][0], h, atol=1e-12)


def jacobian_at_rest(core: nn.Module, n: int) -> Tensor:
    """Of one step, by autodiff, where input and bias are zero."""
    with torch.no_grad():
        core.bias.zero_()  # type: ignore[operator, union-attr]
    still = torch.zeros(1, 1, 3, dtype=torch.float64)
    return torch.autograd.functional.jacobian(lambda h: core(still, h.reshape(1, 1, n))[1].reshape(n),
                                              torch.zeros(n, dtype=torch.float64))  # fmt: skip


def test_recurrent_is_the_jacobian_at_rest() -> None:
    for core, n in (
        (layers.AntisymmetricRNN(3, 4, step_size=0.3, dtype=torch.float64), 4),
        (layers.CoRNN(3, 4, dtype=torch.float64), 8),
        (layers.MinGRU(3, 4, dtype=torch.float64), 4),
        (layers.OrthogonalRNN(3, 4, nonlinearity="tanh", dtype=torch.float64), 4),
    ):
        scattered(core)
        found = jacobian_at_rest(core, n)
        assert torch.allclose(core.recurrent(), found, atol=1e-12)


def test_the_oscillators() -> None:
    core = scattered(layers.CoRNN(3, 4, dt=0.1, stiffness=1.5, damping=0.7, dtype=torch.float64))
    y = z = torch.zeros(2, 4, dtype=torch.float64)
    for t in range(7):
        force = torch.tanh(torch.cat([y, z], 1) @ core.matrix.mT + X[:, t] @ core.input_weight.mT + core.bias)  # type: ignore[operator, union-attr]
        z = z + 0.1 * (force - 1.5 * y - 0.7 * z)
        y = y + 0.1 * z
    output, state = core(X)
    assert torch.allclose(state[0], torch.cat([y, z], 1), atol=1e-12)
    assert torch.allclose(output[:, -1], y, atol=1e-12)


def test_the_gated_orthogonal_unit() -> None:
    core = scattered(layers.GORU(3, 4, dtype=torch.float64))
    w_r, w_z = core.gate_weight.chunk(2)  # type: ignore[operator, union-attr]
    u_r, u_z, u_c = core.input_weight.chunk(3)  # type: ignore[operator, union-attr]
    q = core.recurrent()  # type: ignore[operator]
    h = torch.randn(2, 4, dtype=torch.float64, generator=spawn(1, "h"))
    start = h
    for t in range(7):
        x = X[:, t]
        r = torch.sigmoid(h @ w_r.mT + x @ u_r.mT + core.reset_bias)
        z = torch.sigmoid(h @ w_z.mT + x @ u_z.mT + core.carry_bias)
        a = r * (h @ q.mT) + x @ u_c.mT
        h = z * h + (1 - z) * torch.sign(a) * (a.abs() + core.bias).clamp_min(0)  # type: ignore[operator]
    assert torch.allclose(core(X, start.unsqueeze(0))[1][0], h, atol=1e-12)
    with pytest.raises(InvalidInput, match="map must be real"):
        layers.GORU(3, 4, "urnn")


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_a_free_network_is_that_of_torch(nonlinearity: str) -> None:
    core = scattered(layers.FreeRNN(3, 4, nonlinearity=nonlinearity, dtype=torch.float64))
    theirs = nn.RNN(3, 4, nonlinearity=nonlinearity, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight_hh_l0.copy_(core.matrix)  # type: ignore[arg-type]
        theirs.weight_ih_l0.copy_(core.input_weight)  # type: ignore[arg-type]
        theirs.bias_ih_l0.copy_(core.bias)  # type: ignore[arg-type]
        theirs.bias_hh_l0.zero_()
    for ours, expected in zip(core(X), theirs(X), strict=True):
        assert torch.allclose(ours, expected, atol=1e-12)


def test_the_identity_network_starts_from_the_identity() -> None:
    core = layers.IRNN(3, 6, 0.5)
    assert torch.equal(core.recurrent().detach(), 0.5 * torch.eye(6))
    assert core.nonlinearity == "relu"
    assert float(core.input_weight.detach().std()) == pytest.approx(0.001, rel=0.5)
