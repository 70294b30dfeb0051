from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix


class Energy(nn.Module):
    """The gradient of an energy: its last bias has no influence, and nothing is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 1))

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


class Leaves(nn.Module):
    """Computes something with ``aside`` that no output holds, or picks rows by it."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.aside, self.last, self.way = nn.Linear(6, 8), nn.Linear(6, 4), nn.Linear(8, 3), way
        self.rows = nn.Parameter(torch.randn(4, 8, generator=torch.Generator().manual_seed(1)))

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.aside(x).argmax(-1)
        h = torch.relu(self.first(x))
        return self.last(h + self.rows[chosen] if self.way == "choice" else h + self.rows.sum(0))


def test_the_bias_of_an_energy_is_a_note() -> None:
    found = separatrix.check(Energy(), torch.randn(16, 6), loss="mse", target=torch.randn(16, 6))
    assert found.find("detached") is None
    idle = found.find("unused_parameters")
    assert idle is not None
    assert (idle.severity, idle.where.module) == ("note", "net.2")


@pytest.mark.parametrize(("way", "id", "severity"), [
    ("choice", "detached", "fault"), ("nothing", "unused_parameters", "warning"),
])  # fmt: skip
def test_a_choice_is_a_cut_and_a_result_that_nobody_uses_is_not(way: str, id: str, severity: str) -> None:
    torch.manual_seed(0)
    found = separatrix.check(Leaves(way), torch.randn(16, 6))
    accused = {finding.id: finding.severity for finding in found.findings if finding.severity in ("warning", "fault")}
    assert accused == {id: severity}
