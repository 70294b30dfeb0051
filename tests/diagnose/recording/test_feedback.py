from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix


class Rest(nn.Module):
    """z = tanh(W z + u) by plain steps without a graph, then looks beside the state, then one step with a graph."""

    def __init__(self, gain: float, looks: int) -> None:
        super().__init__()
        self.enter, self.w, self.head = nn.Linear(10, 24), nn.Linear(24, 24, bias=False), nn.Linear(24, 3)
        nn.init.orthogonal_(self.w.weight, gain)
        self.looks = looks

    def forward(self, x: Tensor) -> Tensor:
        u = self.enter(x)
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(40):
                z = torch.tanh(self.w(z) + u)
            for k in range(self.looks):
                torch.tanh(self.w(z * (1 + 1e-5 * k)) + u)
        return self.head(torch.tanh(self.w(z) + u))


@pytest.mark.sampled(1, each="gain")
@pytest.mark.parametrize("looks", [0, 5])
@pytest.mark.parametrize(("gain", "severity"), [(0.6, "ok"), (4.0, "fault")])
def test_looks_beside_the_state_do_not_hide_that_it_moves(gain: float, severity: str, looks: int) -> None:
    torch.manual_seed(0)
    found = separatrix.check(Rest(gain, looks), torch.randn(16, 10)).find("no_equilibrium")
    assert found is not None
    assert found.severity == severity
