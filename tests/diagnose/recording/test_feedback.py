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


class Overwritten(Rest):
    """The same with states that are written over those before them."""

    def forward(self, x: Tensor) -> Tensor:
        u = self.enter(x)
        z = torch.zeros_like(u)
        with torch.no_grad():
            for _ in range(40):
                z.copy_(torch.tanh(self.w(z) + u))
        return self.head(torch.tanh(self.w(z) + u))


@pytest.mark.parametrize(("gain", "severity"), [(0.6, "ok"), (4.0, "fault")])
def test_states_written_over_those_before_are_seen_to_move(gain: float, severity: str) -> None:
    torch.manual_seed(0)
    found = separatrix.check(Overwritten(gain, 0), torch.randn(16, 10)).find("no_equilibrium")
    assert found is not None
    assert found.severity == severity


class Drift(nn.Module):
    """z + exp(V x), and no equilibrium; its one weight sees an input that never changes."""

    def __init__(self) -> None:
        super().__init__()
        self.v, self.head = nn.Linear(10, 10), nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(40):
                z = z + torch.exp(self.v(x))
        return self.head(z + torch.exp(self.v(x)))


def test_an_input_that_never_changes_is_no_state_that_settles() -> None:
    torch.manual_seed(0)
    found = separatrix.check(Drift(), torch.randn(16, 10))
    assert found.find("no_equilibrium") is None
    assert "no_equilibrium" not in found.measures


class FallsBack(nn.Module):
    """Returns to the zero it began with, after steps that led away: not a rest, for zero is no rest of the map."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.head = nn.Linear(10, 10), nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(40):
                z = 2 * self.w(z) + x
        return self.head(2 * self.w(torch.zeros_like(z)) + x)


def test_a_state_that_falls_to_zero_has_not_settled() -> None:
    torch.manual_seed(0)
    found = separatrix.check(FallsBack(), torch.randn(16, 10)).find("no_equilibrium")
    assert found is not None
    assert found.severity == "fault"


class Newton(nn.Module):
    """Newton's method inside a forward: directions and gradients pass through the weight, too."""

    def __init__(self, backwards: bool) -> None:
        super().__init__()
        self.w, self.head, self.backwards = nn.Linear(2, 2), nn.Linear(2, 2), backwards
        nn.init.orthogonal_(self.w.weight, 0.5)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        eye = torch.eye(2)
        with torch.no_grad():
            for _ in range(9):
                residual = self._step(z, x) - z
                columns = [self._product(z, x, unit.expand_as(z)) for unit in eye]
                jacobian = torch.stack(columns, dim=1 if self.backwards else 2)
                z = z + torch.linalg.solve(eye - jacobian, residual.unsqueeze(-1)).squeeze(-1)
        return self.head(self._step(z, x))

    def _step(self, z: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(self.w(z)) + x

    def _product(self, z: Tensor, x: Tensor, direction: Tensor) -> Tensor:
        if not self.backwards:
            return torch.func.jvp(lambda z: self._step(z, x), (z,), (direction,))[1]
        with torch.enable_grad():
            leaf = z.clone().requires_grad_()
            return torch.autograd.grad(self._step(leaf, x), leaf, direction)[0]


@pytest.mark.parametrize("backwards", [pytest.param(False, marks=pytest.mark.slow), True])
def test_directions_of_newtons_method_are_no_states(backwards: bool) -> None:
    torch.manual_seed(0)
    found = separatrix.check(Newton(backwards), torch.randn(4, 2))
    assert found.ran
    finding = found.find("no_equilibrium")
    assert finding is not None
    assert finding.severity == "ok"


class Descent(nn.Module):
    """x - (I + B) z is added to z from zero on, step by step, until it is zero: an increment, and no image of z."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.b, self.head, self.step = nn.Linear(6, 6, bias=False), nn.Linear(6, 3), step
        nn.init.orthogonal_(self.b.weight, 0.3)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        with torch.no_grad():
            for _ in range(60):
                z = z + self.step * (x - z - self.b(z))
        return self.head(z + self.step * (x - z - self.b(z)))


@pytest.mark.parametrize(("step", "severity"), [(0.5, "ok"), (1.9, "fault")])
def test_increments_added_from_zero_on_are_no_images(step: float, severity: str) -> None:
    torch.manual_seed(0)
    finding = separatrix.check(Descent(step), torch.randn(8, 6)).find("no_equilibrium")
    assert finding is not None
    assert finding.severity == severity
