from __future__ import annotations

import pytest
import torch

from attention_cases import clustering_flow
from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import (
    AttentionFlow,
    Layers,
    OjaFlow,
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
    with pytest.raises(InvalidInput, match="durations must be a positive number"):
        Layers((flow,), (0.0,))
