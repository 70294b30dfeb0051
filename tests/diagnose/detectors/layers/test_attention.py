from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES

_ = (faults, healthy)


def test_tokens_that_are_alike_inside_a_branch_are_no_collapse() -> None:
    """At the output of attention healthy tokens are nearly equal; the trunk is what counts."""
    found = scores.examine(RECIPES["former_post"].case(0))
    inside = [row["diversity"] for row in found.profiles["depth"] if row["diversity"] is not None]
    assert min(inside) < 0.5 * found.measures["rank_collapse"]
    assert found.find("rank_collapse").severity == "ok"  # type: ignore[union-attr]


def test_masked_keys_do_not_count_for_the_entropy() -> None:
    found = scores.examine(RECIPES["former_causal"].case(0))
    assert found.measures["attention_collapse"] > 0.95
    assert {row["mask"] for row in found.profiles["attention"]} == {"causal"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "severity"), [("over_queries", "warning"), ("over_queries_causal", "fault")])
def test_a_softmax_over_queries_is_a_fault_only_where_the_future_leaks(name: str, severity: str) -> None:
    found = scores.examine(RECIPES[name].case(0)).find("softmax_axis")
    assert found is not None
    assert found.severity == severity


@pytest.mark.slow
def test_a_fused_call_is_seen_as_the_plain_one() -> None:
    plain = RECIPES["former_causal"].case(0)
    for block in plain.model.blocks:
        block.attention.kind = "fused"
    again = scores.examine(plain)
    for block in plain.model.blocks:
        block.attention.kind = "plain"
    first = scores.examine(plain)
    assert again.measures["attention_collapse"] == pytest.approx(first.measures["attention_collapse"], abs=0.02)


class _Translator(nn.Module):
    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(12, 16), nn.Linear(16, 12)
        self.former = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
        self.masked = masked

    def forward(self, source: Tensor) -> Tensor:
        shifted = torch.cat([torch.zeros_like(source[:, :1]), source[:, :-1]], 1)
        ahead = torch.ones(source.shape[1], source.shape[1], dtype=torch.bool).triu(1)
        target = self.table(shifted)
        if not self.masked:  # one masked layer, then a mean over the future
            target = target + target.mean(1, keepdim=True)
        return self.head(self.former(self.table(source), target, tgt_mask=ahead))


@pytest.mark.parametrize("masked", [True, False])
def test_an_encoder_may_see_all_of_its_sequence_and_a_decoder_may_not(masked: bool) -> None:
    torch.manual_seed(0)
    found = separatrix.check(_Translator(masked), torch.randint(1, 12, (6, 8))).find("causal_leak")
    assert found is not None
    assert found.severity == ("ok" if masked else "fault")


class _Scores(nn.Module):
    """Plain attention whose softmax runs over a given axis of (samples, heads, queries, keys)."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis, self.qkv, self.last = axis, nn.Linear(12, 36), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, 3, d // 3).permute(2, 0, 3, 1, 4)
        p = (q @ k.mT / 2).softmax(self.axis)
        return self.last((x + (p @ v).transpose(1, 2).reshape(b, t, d)).mean(1))


@pytest.mark.parametrize(("axis", "said"), [(1, "heads"), (2, "queries"), (3, None)])
def test_a_softmax_over_heads_is_told_as_one_over_queries_is(axis: int, said: str | None) -> None:
    torch.manual_seed(0)
    found = separatrix.check(_Scores(axis), torch.randn(8, 6, 12)).find("softmax_axis")
    assert (found is None) == (said is None)
    if found is not None and said is not None:
        assert found.severity == "warning"
        assert said in found.meaning


class _Latents(nn.Module):
    """Latent tokens that start nearly alike read 30 others: another stream, whose tokens never grew alike."""

    def __init__(self) -> None:
        super().__init__()
        self.latents, self.read, self.norm = nn.Parameter(torch.randn(6, 16) * 0.02), nn.Linear(5, 16), nn.LayerNorm(16)
        self.cross = nn.MultiheadAttention(16, 2, batch_first=True)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True, dropout=0.0)
        self.last = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        keys, z = self.read(x), self.latents.expand(len(x), -1, -1)
        return self.last(self.block(z + self.cross(self.norm(z), keys, keys)[0]).mean(1))


def test_tokens_are_compared_with_the_beginning_of_their_own_stream() -> None:
    torch.manual_seed(0)
    found = separatrix.check(_Latents(), torch.randn(8, 30, 5))
    assert found.measures["rank_collapse"] < 0.2
    assert [finding.id for finding in found.findings if finding.severity in ("warning", "fault")] == []
