"""Promises that every normalisation of attention keeps. A new one adds one line to NORMALISATIONS."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput
from separatrix.dynamics import (
    AbstractNormalisation,
    AttentionFlow,
    Sinkhorn,
    Softmax,
    Uniform,
    integrate,
    random_tokens,
)
from stranger_flows import Tempered

NORMALISATIONS: dict[str, AbstractNormalisation] = {
    "softmax": Softmax(),
    "uniform": Uniform(),
    "sinkhorn": Sinkhorn(),
    "stranger's": Tempered(),
}
SIZES = torch.tensor([3.0, 1.0, 2.0, 5.0], dtype=torch.float64)


@pytest.fixture(params=NORMALISATIONS, ids=list(NORMALISATIONS))
def normalisation(request: pytest.FixtureRequest) -> AbstractNormalisation:
    return NORMALISATIONS[request.param]


@pytest.fixture
def logits(generator: torch.Generator) -> Tensor:
    return torch.randn(3, 4, 4, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("log_sizes", [None, SIZES.log()], ids=["tokens", "clusters"])
def test_rows_are_weights(normalisation: AbstractNormalisation, logits: Tensor, log_sizes: Tensor | None) -> None:
    weights = normalisation.weights(logits, log_sizes)
    assert bool((weights >= 0).all())
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 4).double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("log_sizes", [None, SIZES.log()], ids=["tokens", "clusters"])
def test_tangent_is_the_derivative(
    normalisation: AbstractNormalisation, logits: Tensor, log_sizes: Tensor | None, generator: torch.Generator
) -> None:
    change, h = torch.randn(logits.shape, generator=generator, dtype=torch.float64), 1e-4
    ahead, behind = (normalisation.weights(logits + sign * h * change, log_sizes) for sign in (1, -1))
    found = normalisation.tangent(normalisation.weights(logits, log_sizes), change, log_sizes)
    # central differences: truncation h^2, and the tolerance of an iteration over h
    torch.testing.assert_close(found, (ahead - behind) / (2 * h), rtol=0, atol=1e-5)
    if not normalisation.follows_logits:
        assert float(found.abs().max()) == 0


def test_columns_with_sizes_stand_for_that_many_tokens(normalisation: AbstractNormalisation, logits: Tensor) -> None:
    counts = SIZES.long()
    full = logits.repeat_interleave(counts, dim=-1).repeat_interleave(counts, dim=-2)
    apart = normalisation.weights(full, None)
    together = normalisation.weights(logits, SIZES.log())
    summed = torch.stack([part.sum(dim=-1) for part in apart.split(counts.tolist(), dim=-1)], dim=-1)
    torch.testing.assert_close(summed, together.repeat_interleave(counts, dim=-2), rtol=0, atol=1e-8)


def test_sizes_may_have_leading_axes_of_their_own(normalisation: AbstractNormalisation, logits: Tensor) -> None:
    several = torch.stack([SIZES, SIZES.flip(0)]).log()
    apart = torch.stack([normalisation.weights(logits[0], one) for one in several])
    torch.testing.assert_close(normalisation.weights(logits[0], several), apart, rtol=0, atol=1e-12)
    changes = torch.stack([normalisation.tangent(a, logits[1], one) for a, one in zip(apart, several, strict=True)])
    torch.testing.assert_close(normalisation.tangent(apart, logits[1], several), changes, rtol=0, atol=1e-12)


def test_hidden_tokens_get_no_weight(normalisation: AbstractNormalisation, logits: Tensor) -> None:
    band = (torch.arange(4).unsqueeze(-1) - torch.arange(4)).abs() > 1
    weights = normalisation.weights(logits.masked_fill(band, -torch.inf), None)
    assert float(weights[:, band].abs().max()) == 0
    assert bool(torch.isfinite(weights).all())


def test_batches_are_independent(normalisation: AbstractNormalisation, logits: Tensor) -> None:
    alone = torch.stack([normalisation.weights(item, None) for item in logits])
    torch.testing.assert_close(normalisation.weights(logits, None), alone, rtol=0, atol=1e-14)


def test_single_precision_is_respected(normalisation: AbstractNormalisation, logits: Tensor) -> None:
    weights = normalisation.weights(logits.float(), None)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.double(), normalisation.weights(logits, None), rtol=0, atol=1e-4)


def test_attention_takes_the_object(normalisation: AbstractNormalisation, generator: torch.Generator) -> None:
    value = torch.diag(torch.tensor([2.0, 0.5, -1.0]).double())
    flow = AttentionFlow(query=torch.eye(3).double(), key=torch.eye(3), value=value, normalisation=normalisation)
    assert flow.normalisation is normalisation
    assert integrate(flow, random_tokens(4, 3, 2, generator=generator)).ok


def test_names_and_objects_mean_the_same(generator: torch.Generator) -> None:
    x, eye = random_tokens(4, 3, generator=generator), torch.eye(3).double()
    for name in ("softmax", "uniform", "sinkhorn"):
        by_name = AttentionFlow.from_coupling(eye, eye, normalisation=name)
        by_object = AttentionFlow.from_coupling(eye, eye, normalisation=NORMALISATIONS[name])
        torch.testing.assert_close(by_name.velocity(x), by_object.velocity(x), rtol=0, atol=0)
    with pytest.raises(InvalidInput, match=r"unknown normalisation 'softmin'. Did you mean 'softmax'"):
        AttentionFlow.from_coupling(eye, eye, normalisation="softmin")
