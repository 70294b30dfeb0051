from __future__ import annotations

import math

import pytest
import torch

from attention_cases import clustering_flow
from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import (
    AttentionFlow,
    Layers,
    OjaFlow,
    follow_weights,
    integrate,
    layers_of,
    random_tokens,
    run_layers,
)


def test_equal_layers_are_one_flow_for_a_longer_time(generator: torch.Generator) -> None:
    flow, x = clustering_flow(), random_tokens(5, 3, 2, generator=generator)
    run = run_layers(layers_of([flow, flow], 0.8), x)
    whole = integrate(flow, x, "reference", t_max=1.6, finishing=False)
    torch.testing.assert_close(run.states[-1], whole.final, rtol=0, atol=1e-5)
    assert run.states.shape == (3, 2, 5, 3)


def test_smooth_weights_are_followed_to_fourth_order(generator: torch.Generator) -> None:
    # One token under diag(a(t), 0): the angle obeys tan(theta) = tan(theta_0) exp(-integral of a).
    def flow_at(t: float) -> OjaFlow:
        return OjaFlow(torch.diag(torch.tensor([1 + t, 0.0], dtype=torch.float64)))

    x = torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    end = follow_weights(flow_at, x, 2.0)
    assert float(end[0, 1] / end[0, 0]) == pytest.approx(0.8 / 0.6 * math.exp(-4.0), rel=1e-4)


def test_layers_report_alignment_and_exponents() -> None:
    value = torch.diag(torch.tensor([2.0, 0.5]).double())
    flow = AttentionFlow.from_coupling(torch.eye(2).double(), value)
    run = run_layers(layers_of([flow] * 2, 4.0), torch.tensor([[1.0, 0.0]] * 3).double(), n_exponents=3)
    assert run.alignment.tolist() == pytest.approx([1.0] * 2)
    # At consensus the slowest tangent eigenvalue is lambda_2 - lambda_1.
    assert run.exponents.tolist() == pytest.approx([-1.5] * 2, abs=1e-3)


def test_bad_layers_are_refused() -> None:
    flow = clustering_flow()
    with pytest.raises(ShapeError, match="as many flows as durations; got 1 and 2"):
        Layers((flow,), (1.0, 2.0))
    with pytest.raises(ShapeError, match="tokens of one dimension"):
        Layers((flow, OjaFlow(torch.eye(2))), (1.0, 2.0))
    with pytest.raises(InvalidInput, match="duration must be a positive number"):
        follow_weights(lambda t: flow, torch.eye(3).double(), 0.0)
