from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from attention_models import bert_state, gpt2_state
from separatrix.core import InvalidInput, spawn
from separatrix.diagnose import AttentionLayer, attention_layers, frozen_flow
from separatrix.dynamics import classify, integrate, random_tokens


def one_head(coupling: torch.Tensor, value: torch.Tensor) -> AttentionLayer:
    d = len(value)
    eye = torch.eye(d, dtype=torch.float64)
    return AttentionLayer(
        name="made up",
        query=eye.unsqueeze(0) * math.sqrt(d),
        key=coupling.double().unsqueeze(0),
        value=value.double().unsqueeze(0),
        output=eye.unsqueeze(0),
    )


def test_real_principal_eigenvalue_ends_in_consensus_on_its_eigenvector(generator: torch.Generator) -> None:
    layer = one_head(torch.eye(3), torch.diag(torch.tensor([1.0, 0.4, -0.5])))
    ends = frozen_flow(layer, random_tokens(6, 3, 4, generator=generator), token_norm=0.3)
    assert {end.kind for end in ends} == {"consensus"}
    assert all(end.alignment == pytest.approx(1, abs=1e-12) and end.stable for end in ends)
    assert all(end.residual < 1e-12 for end in ends)


def test_complex_principal_pair_ends_in_a_rotating_consensus(generator: torch.Generator) -> None:
    value = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]])
    (end,) = frozen_flow(one_head(0.1 * torch.eye(3), value), random_tokens(4, 3, generator=generator), token_norm=1)
    assert end.kind == "consensus cycle"
    assert end.stable
    assert end.alignment == pytest.approx(1, abs=1e-12)
    assert end.period == pytest.approx(math.pi)  # the pair is 1 +- 2i: 2 pi / 2
    assert "rotates in the principal plane" in end.sentence


def test_opposite_groups_are_found_and_certified(generator: torch.Generator) -> None:
    layer = one_head(8 * torch.eye(3), torch.diag(torch.tensor([1.0, 0.2, -0.5])))
    ends = frozen_flow(layer, random_tokens(8, 3, 6, generator=generator), token_norm=1)
    split = [end for end in ends if end.kind == "bipartite"]
    assert split
    assert all(end.stable and len(end.sizes) == 2 and sum(end.sizes) == 8 for end in split)


def test_ends_agree_with_the_certified_integration_of_the_same_flow(generator: torch.Generator) -> None:
    layer = attention_layers(bert_state(6, seed=7), n_heads=2).layers[0]
    x = random_tokens(7, 6, 5, generator=generator)
    flow = layer.flow(token_norm=2.0)
    theirs = classify(flow, integrate(flow, x, t_max=60.0).final, cycles=False)
    ours = frozen_flow(layer, x, token_norm=2.0)
    compared = [(end, other) for end, other in zip(ours, theirs, strict=True) if other.is_equilibrium]
    assert compared
    for end, other in compared:
        assert (end.kind, end.stable) == (other.kind, other.stable)
        assert end.sizes == tuple(sorted(other.sizes, reverse=True))


def test_biases_and_causal_masks_are_followed(generator: torch.Generator) -> None:
    layer = attention_layers(gpt2_state(6, seed=4), n_heads=2).layers[0]
    x = random_tokens(4, 6, 1, generator=generator)
    (end,) = frozen_flow(layer, x, biases=True, t_max=60)
    assert end.kind in ("consensus", "moving groups", "resting, not certified")
    assert sum(end.sizes) == 4
    free = dataclasses.replace(layer, causal=False)
    (affine,) = frozen_flow(free, x, biases=True, t_max=60)
    assert affine.stable is None
    assert math.isfinite(affine.residual)


def test_result_does_not_depend_on_the_other_starts(generator: torch.Generator) -> None:
    layer = attention_layers(bert_state(6, seed=3), n_heads=2).layers[0]
    x = random_tokens(5, 6, 3, generator=generator)
    together, alone = frozen_flow(layer, x), frozen_flow(layer, x[1])
    assert together[1].kind == alone[0].kind
    assert together[1].sizes == alone[0].sizes
    assert together[1].alignment == pytest.approx(alone[0].alignment, abs=1e-9)


def test_bad_tokens_and_times_are_refused() -> None:
    layer = one_head(torch.eye(3), torch.eye(3))
    with pytest.raises(InvalidInput, match="tokens must be unit vectors"):
        frozen_flow(layer, torch.full((2, 3), 2.0))
    with pytest.raises(InvalidInput, match="t_max must be a positive number"):
        frozen_flow(layer, random_tokens(2, 3, generator=spawn(0, "bad")), t_max=-1)


@pytest.mark.needs_data
@pytest.mark.slow
def test_minilm_layer_0_collapses_exactly(data_dir: Path) -> None:
    layers = attention_layers(data_dir / "weights" / "minilm_l6_attention.safetensors", n_heads=12).layers
    (end,) = frozen_flow(layers[0], random_tokens(12, 384, generator=spawn(0, "frozen")))
    assert end.kind == "consensus"
    assert end.stable
    assert end.alignment == pytest.approx(1, abs=1e-9)
