from __future__ import annotations

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from separatrix.dynamics import AttentionFlow, lyapunov_exponents, random_tokens


@pytest.mark.slow
def test_exponents_on_the_sphere_are_those_of_angles_however_many_are_asked_for() -> None:
    # With an antisymmetric value matrix what rounding adds off the sphere outgrows the true tangents.
    value = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(3)
    coupling = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    start = random_tokens(3, 2, generator=generator)

    def turning(angle: Tensor) -> Tensor:
        tokens = torch.stack([angle.cos(), angle.sin()], -1)
        pull = torch.softmax(tokens @ coupling @ tokens.mT, -1) @ tokens @ value.mT
        return (pull * torch.stack([-angle.sin(), angle.cos()], -1)).sum(-1)

    def moved(time: float, state: numpy.ndarray) -> numpy.ndarray:
        angle, carried = torch.tensor(state[:3]), torch.tensor(state[3:]).reshape(3, 3)
        return torch.cat([turning(angle), (torch.func.jacrev(turning)(angle) @ carried).reshape(-1)]).numpy()

    angle, carried, total = torch.atan2(start[:, 1], start[:, 0]).numpy(), numpy.eye(3), numpy.zeros(3)
    for _ in range(20):
        begin = numpy.concatenate([angle, carried.reshape(-1)])
        end = solve_ivp(moved, (0, 1), begin, method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
        carried, growth = numpy.linalg.qr(end[3:].reshape(3, 3))
        angle, total = end[:3], total + numpy.log(abs(numpy.diag(growth)))
    flow = AttentionFlow.from_coupling(coupling, value)
    every = lyapunov_exponents(flow, start, n_exponents=3, duration=20.0, interval=1.0)
    assert every.tolist() == pytest.approx(sorted(total / 20, reverse=True), abs=1e-4)
    first = lyapunov_exponents(flow, start, n_exponents=1, duration=20.0, interval=1.0)
    assert float(first[0]) == pytest.approx(float(every[0]), abs=0.05)  # one vector turns to the leading one in time
