from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp

from attention_cases import clustering_flow
from separatrix.dynamics import AttentionFlow, random_tokens
from separatrix.dynamics.integration.orbits import shooting
from stranger_flows import VanDerPol

ROTATING = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)


def test_closing_an_orbit_takes_few_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = list[int]()
    once = shooting._around

    def counted(*given: Any) -> torch.Tensor:
        counts.append(1)
        return once(*given)

    monkeypatch.setattr(shooting, "_around", counted)
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), ROTATING)
    on_orbit = torch.tensor([0.6, 0.8, 0.0], dtype=torch.float64).expand(4, 3)
    beside = flow.project(on_orbit + 0.02 * torch.eye(4, 3, dtype=torch.float64)).unsqueeze(0)
    closed = shooting.shoot(flow, beside, torch.tensor([3.0], dtype=torch.float64))
    assert bool(closed.found)
    assert float(closed.period) == pytest.approx(math.pi, abs=1e-8)
    assert len(counts) <= 3  # the last one certifies; an exact Newton method takes five


def test_nothing_closed_is_no_error(generator: torch.Generator) -> None:
    flow = clustering_flow().with_sizes(torch.tensor([[1.0, 2.0]] * 3).double())  # sizes of each element
    x = random_tokens(2, 3, 3, generator=generator)
    closed = shooting.shoot(flow, x, torch.ones(3, dtype=torch.float64))
    assert not bool(closed.found.any())
    assert bool(closed.period.isnan().all())


@pytest.mark.slow
@pytest.mark.parametrize("mu", [20.0, 100.0])
def test_orbits_with_jumps_are_closed_by_differences_of_neighbours(mu: float) -> None:
    def field(_: float, y: numpy.ndarray) -> list[float]:
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

    def crossing(_: float, y: numpy.ndarray) -> float:
        return float(y[0] - 1.7)

    crossing.direction = -1  # type: ignore[attr-defined]
    known = solve_ivp(field, (0, 4.5 * mu), [2.0, 0.0], "Radau", rtol=1e-10, atol=1e-12, events=crossing)
    period = float(known.t_events[0][-1] - known.t_events[0][-2])
    beside = torch.tensor(known.y_events[0][-1]) + torch.tensor([3e-3, 0.0])
    guess = torch.tensor([1.01 * period], dtype=torch.float64)
    closed = shooting.shoot_stiff(VanDerPol(torch.tensor(mu).double()), beside[None, None], guess)
    assert bool(closed.found)
    assert float(closed.period) == pytest.approx(period, rel=1e-6)
    # one multiplier along the orbit, and exp of the integral of the divergence, which is no number above 1e-20
    values = torch.linalg.eigvals(closed.monodromy[0]).abs().sort().values.tolist()
    assert values == pytest.approx([0.0, 1.0], abs=float(closed.error))
    assert float(closed.error) < 0.05
