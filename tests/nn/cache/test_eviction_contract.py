"""What every eviction policy promises. A policy of yours is one line in POLICIES."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix import nn
from separatrix.nn import BoundedKeys, CacheSight, play_eviction


class KeepsLongValues(nn.AbstractEviction):
    """A stranger's policy: the length of the value decides, and a counter of its own is kept."""

    name = "long values"

    def begin(self) -> list[int]:
        return [0]

    def observe(self, sight: CacheSight) -> None:
        sight.own[0] += sight.queries.shape[1]
        sight.scores.copy_(sight.values.norm(dim=-1))


POLICIES = {
    **nn.EVICTIONS,
    "screening, share": nn.ScreenedKeys("share"),
    "screening, mean": nn.ScreenedKeys("mean"),
    "heavy_hitter, share": nn.HeavyHitterKeys("share"),
    "heavy_hitter, mean": nn.HeavyHitterKeys("mean"),
    "given": nn.GivenKeyScores(torch.arange(40.0).cos()),
    "scored by": nn.ScoredBy(lambda sight: -sight.keys.norm(dim=-1)),
    "played: attention_max": nn.PlayedScreening(nn.AttentionMax()),
    "played: random": nn.PlayedScreening(nn.RandomChoice(3)),
    "stranger: long values": KeepsLongValues(),
}
PADDABLE = [name for name in POLICIES if not name.startswith("played")]
"""Those that are played query by query refuse padding."""


pytestmark = pytest.mark.sampled(4, across="policy")


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> nn.AbstractEviction:
    return POLICIES[request.param]


def tokens(batch: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    query = torch.randn(batch, 4, count, 6, generator=generator, dtype=torch.float64)
    key, value = torch.randn(2, batch, 2, count, 6, generator=generator, dtype=torch.float64)
    return 2 * query, key, value


def fed(policy: nn.AbstractEviction, parts: tuple[int, ...], data: tuple[Tensor, ...], **options: object) -> tuple:
    """Outputs and keys after tokens in parts."""
    keys, outputs, start = BoundedKeys(5, 4, policy, **options), [], 0
    for count in parts:
        outputs.append(keys.attend(*(part[:, :, start : start + count] for part in data)))
        start += count
    return torch.cat(outputs, 2), keys


def test_the_budget_holds_after_every_call(policy: nn.AbstractEviction) -> None:
    data = tokens(2, 30, seeded(1))
    for parts in ((30,), (1,) * 30, (7, 1, 1, 12, 9)):
        _, keys = fed(policy, parts, data)
        assert keys.n_kept <= 9
        assert keys.seen == 30
        assert keys.kept_positions[..., :].ge(25).sum(-1).eq(5).all()  # the buffer is always there
        if not isinstance(policy, nn.AppendOnlyKeys):
            assert keys.kept_positions.min() >= 0
            assert keys.n_kept == 9


def test_a_budget_as_long_as_the_text_changes_nothing(policy: nn.AbstractEviction) -> None:
    query, key, value = tokens(2, 12, seeded(2))
    keys = BoundedKeys(12, 3, policy, prefill_chunk=5)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(keys.attend(query, key, value), expected, rtol=1e-12, atol=1e-12)


def test_chunks_inside_a_call_are_calls(policy: nn.AbstractEviction) -> None:
    data = tokens(2, 23, seeded(3))
    whole, kept = fed(policy, (23,), data, prefill_chunk=7)
    parts, same = fed(policy, (7, 7, 7, 2), data)
    torch.testing.assert_close(whole, parts, rtol=0, atol=0)
    assert torch.equal(kept.kept_positions, same.kept_positions)


def test_a_sequence_does_not_depend_on_its_batch(policy: nn.AbstractEviction) -> None:
    data = tokens(3, 20, seeded(4))
    together, _ = fed(policy, (11, *(1,) * 9), data)
    for sample in range(3):
        alone, _ = fed(policy, (11, *(1,) * 9), tuple(part[sample : sample + 1] for part in data))
        torch.testing.assert_close(together[sample : sample + 1], alone, rtol=1e-12, atol=1e-12)


def test_what_is_forgotten_never_returns(policy: nn.AbstractEviction) -> None:
    logits, lost = torch.randn(1, 2, 25, 25, generator=seeded(5), dtype=torch.float64), torch.zeros(2, 25, dtype=bool)
    for row in play_eviction(logits, 4, 3, policy)[0].unbind(1):
        assert not bool((lost & (row > 0)).any())
        step = int((row > 0).nonzero()[:, 1].max())
        lost |= (row == 0) & (torch.arange(25) <= step)


@pytest.mark.parametrize("name", PADDABLE)
def test_padding_at_the_left_is_as_if_it_were_not_there(name: str) -> None:
    policy, lengths = POLICIES[name], torch.tensor([0, 3])
    data = tokens(2, 20, seeded(6))
    together, keys = fed(policy, (20,), data, pad_lengths=lengths)
    alone, single = fed(policy, (17,), tuple(part[1:, :, 3:] for part in data))
    torch.testing.assert_close(together[1:, :, 3:], alone, rtol=1e-12, atol=1e-12)
    assert torch.equal(keys.kept_positions[1:][..., : single.n_kept], single.kept_positions)
    assert together.isfinite().all()
