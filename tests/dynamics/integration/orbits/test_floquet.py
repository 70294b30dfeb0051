from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import Outcome
from separatrix.dynamics import integrate, limit_cycle
from separatrix.dynamics.integration.orbits.floquet import certificates
from stranger_flows import Hopf


@pytest.mark.sampled(1, each="mu")
@pytest.mark.parametrize("mu", [0.3, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("twist", [0.0, 3.0])
def test_weakly_attracting_cycles_are_certified_by_their_known_multiplier(mu: float, twist: float) -> None:
    start = torch.tensor([[[1.02, 0.0]]], dtype=torch.float64) * math.sqrt(mu)
    run = integrate(Hopf(mu, twist), start, atol=1e-9 * math.sqrt(mu))
    assert run.outcome.tolist() == [Outcome.CYCLE]
    floquet = run.cycles[0]
    truth = math.exp(-4 * math.pi * mu / (1 + twist * mu))
    assert floquet.largest == pytest.approx(truth, abs=floquet.margin + 1e-12)
    assert floquet.margin < 1e-6
    assert floquet.stable == (1 - truth > floquet.margin)
    if mu >= 1e-4:
        assert floquet.stable  # the fixed margin of 1e-3 refused the last of these
    torch.testing.assert_close(run.final.norm(dim=-1), torch.full((1, 1), mu**0.5).double(), rtol=1e-5, atol=0)


def test_an_unstable_cycle_next_to_the_unit_circle_is_not_called_stable() -> None:
    class Backwards(Hopf):
        def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            return -super().velocity(x, t)

        def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            return -super().jvp(x, u, t)

    mu = 1e-4
    orbit = limit_cycle(Backwards(mu), torch.tensor([[mu**0.5, 0.0]], dtype=torch.float64), period=6.3)
    assert orbit.outcome == Outcome.CYCLE
    assert float(orbit.multipliers[1].real) == pytest.approx(math.exp(4 * math.pi * mu), abs=2 * orbit.margin)
    assert not orbit.stable


def test_the_margin_follows_the_error_and_the_condition_of_the_multipliers() -> None:
    one, none = torch.ones(1).double(), torch.zeros(1, 1, 0, 0).double()

    def margin(section: list[list[float]], error: float) -> float:
        matrix = torch.tensor([section], dtype=torch.float64)
        return certificates(one, matrix, none, one.unsqueeze(0), one, error * one)[0].margin

    assert margin([[0.5, 0.0], [0.0, 0.9]], 1e-6) == pytest.approx(1e-6, rel=1e-3)
    # a perturbation e of a Jordan block moves its eigenvalues by the root of e
    assert 1e-5 <= margin([[0.9, 1.0], [0.0, 0.9]], 1e-10) < 1e-4
    skew = margin([[0.9, 1e3], [0.0, 0.5]], 1e-9)
    worst = torch.linalg.eigvals(torch.tensor([[0.9, 1e3], [1e-9, 0.5]], dtype=torch.float64)).abs().max()
    assert float(worst) - 0.9 < skew < 1e-4
