from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attention_cases import clustering_flow
from separatrix.dynamics import AttentionFlow, random_tokens
from separatrix.dynamics.integration.orbits import shooting

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
