from __future__ import annotations

import numpy
import pytest
import torch

from separatrix.core import InvalidInput, NotConverged, ShapeError
from separatrix.dynamics import AttentionFlow, OjaFlow, random_tokens

EYE = torch.eye(3, dtype=torch.float64)


def test_jacobian_equals_automatic_differentiation_on_random_weights(generator: torch.Generator) -> None:
    for case in range(20):
        n, d = 1 + case % 6, 2 + case % 4
        coupling, value = (torch.randn(d, d, generator=generator, dtype=torch.float64) for _ in range(2))
        flow = AttentionFlow.from_coupling(coupling, value, beta=0.2 * (1 + case % 7))
        x = random_tokens(n, d, generator=generator)
        automatic = torch.autograd.functional.jacobian(lambda y, flow=flow: flow.velocity(y), x)
        gap = (flow.ambient_jacobian(x) - automatic).abs().max()
        assert gap < 1e-12 * max(1.0, float(automatic.abs().max()))


def test_tangent_jacobian_has_no_radial_directions(generator: torch.Generator) -> None:
    flow = AttentionFlow.from_coupling(EYE, torch.diag(torch.tensor([2.0, 1.0, -1.0]).double()))
    x = EYE[:1].repeat(4, 1)
    assert flow.jacobian(x).shape == (8, 8)
    ambient = torch.linalg.eigvals(flow.jacobian(x, "ambient")).real
    tangent = torch.linalg.eigvals(flow.jacobian(x)).real
    # At consensus on v_1 the radial eigenvalues are -2 lambda_1, which carry no dynamics.
    assert int((ambient + 4).abs().lt(1e-9).sum()) == 4
    assert not bool((tangent + 4).abs().lt(1e-9).any())


def test_sinkhorn_attention_is_doubly_stochastic(generator: torch.Generator) -> None:
    flow = AttentionFlow.from_coupling(3 * EYE, EYE, normalisation="sinkhorn")
    attention = flow.attention(random_tokens(7, 3, 4, generator=generator))
    assert (attention.sum(-1) - 1).abs().max() < 1e-10
    assert (attention.sum(-2) - 1).abs().max() < 1e-10


def test_sinkhorn_that_cannot_converge_says_so(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.dynamics.flows.normalisation.SINKHORN_STEPS", 3)
    flow = AttentionFlow.from_coupling(3 * EYE, EYE, normalisation="sinkhorn")
    with pytest.raises(NotConverged, match="did not reach 1e-10 in 3 sweeps"):
        flow.velocity(random_tokens(7, 3, generator=generator))


def test_uniform_attention_is_the_limit_of_small_beta(generator: torch.Generator) -> None:
    x = random_tokens(5, 3, generator=generator)
    value = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    nearly = AttentionFlow.from_coupling(EYE, value, beta=1e-9).velocity(x)
    torch.testing.assert_close(AttentionFlow.from_coupling(EYE, value, normalisation="uniform").velocity(x), nearly)
    torch.testing.assert_close(OjaFlow(value).velocity(x), nearly)


def test_weight_instances_broadcast_against_starts(generator: torch.Generator) -> None:
    couplings, values = (torch.randn(2, 1, 3, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    x = random_tokens(5, 3, 2, 4, generator=generator)
    flow = AttentionFlow.from_coupling(couplings, values, beta=torch.tensor([[0.5], [2.0]]))
    for i, beta in enumerate((0.5, 2.0)):
        alone = AttentionFlow.from_coupling(couplings[i, 0], values[i, 0], beta)
        torch.testing.assert_close(flow.velocity(x)[i], alone.velocity(x[i]), rtol=0, atol=1e-13)


def test_numpy_arrays_and_lists_are_welcome() -> None:
    flow = AttentionFlow(query=numpy.eye(2), key=[[1, 0], [0, 2]], value=numpy.eye(2))
    assert flow.velocity(torch.eye(2, dtype=torch.float64)).dtype == torch.float64


def test_one_token_follows_the_oja_flow_and_the_circle_is_valid() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(2), torch.diag(torch.tensor([2.0, 1.0])))
    x = torch.tensor([[0.6, 0.8]])
    torch.testing.assert_close(flow.velocity(x), torch.tensor([[0.6 * (2 - 1.36), 0.8 * (1 - 1.36)]]))


def test_dense_jacobian_of_a_large_state_is_refused_unless_forced() -> None:
    flow = OjaFlow(EYE)
    x = EYE[:1].repeat(2001, 1)
    with pytest.raises(InvalidInput, match=r"n \* d <= 6000; got 2001 \* 3 = 6003.*force=True"):
        flow.jacobian(x)
    with pytest.raises(InvalidInput, match=r"unknown space 'tangnt'. Did you mean 'tangent'"):
        flow.jacobian(x[:2], "tangnt")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": torch.ones(3, 2)}, r"value must be a square matrix"),
        ({"value": torch.ones(1, 1)}, r"d >= 2"),
        ({"value": torch.full((3, 3), torch.nan)}, r"value must be finite; entry \(0, 0\) is nan"),
        ({"query": torch.ones(2, 4)}, r"query must have shape \(..., m, 3\) to match value; got \(2, 4\)"),
        ({"query": torch.ones(2, 3)}, r"same number of rows; got \(2, 3\) and \(3, 3\)"),
        ({"beta": -1.0}, r"beta must not be negative; got -1"),
        ({"mask": "casual"}, r"unknown mask 'casual'. Did you mean 'causal'"),
        ({"mask": object()}, r"mask must be 'causal'.*, a boolean matrix or None; got"),
        ({"mask": torch.ones(4, 4)}, r"mask must be a boolean matrix"),
        ({"mask": torch.eye(3).bool() & False}, r"mask must let every token attend to something; row 0 is empty"),
        ({"normalisation": "sofmax"}, r"unknown normalisation 'sofmax'. Did you mean 'softmax'"),
        ({"sizes": torch.tensor([1.0, -2.0])}, r"sizes must not be negative; entry \(1,\) is -2"),
        ({"sizes": torch.zeros(2)}, r"sizes must have a positive sum"),
        ({"heads": True}, r"axis of heads"),
    ],
)
def test_bad_weights_are_refused_by_name(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"query": EYE, "key": EYE, "value": EYE}
    with pytest.raises(InvalidInput, match=message):
        AttentionFlow(**{**arguments, **changes})  # type: ignore[arg-type]


def test_tokens_of_the_wrong_dimension_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"tokens must have shape \(..., n, 3\); got \(4, 2\)"):
        AttentionFlow.from_coupling(EYE, EYE).velocity(torch.ones(4, 2, dtype=torch.float64))


def test_masked_flows_cannot_be_reduced_to_clusters() -> None:
    with pytest.raises(InvalidInput, match="without mask and bias"):
        AttentionFlow.from_coupling(EYE, EYE, mask="causal").with_sizes(torch.ones(2).double())


def test_a_flow_keeps_the_weights_it_was_given() -> None:
    value, sizes = torch.diag(torch.tensor([2.0, 1.0, -1.0], dtype=torch.float64)), torch.ones(4, dtype=torch.float64)
    flow = AttentionFlow.from_coupling(torch.eye(3, dtype=torch.float64), value, sizes=sizes)
    x = flow.project(torch.arange(12.0, dtype=torch.float64).reshape(4, 3))
    before = flow.velocity(x)
    value *= 3.0
    sizes[0] = 100.0
    assert torch.equal(flow.velocity(x), before)
    assert float(flow.rate) == 2.0
    assert flow.sizes is not None
    assert flow.sizes.tolist() == [1.0] * 4
