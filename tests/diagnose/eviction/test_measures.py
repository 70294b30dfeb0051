"""What a cache kept, on attention that was made to order: a planted freeze, and healthy policies that must pass."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.diagnose import measure_kept
from separatrix.nn import play_eviction

T = 64


def moving(noise: float = 0.3, seed: int = 1) -> Tensor:
    """Logits of heads that look at six early keys for a while, then at eight others that came before the change."""
    logits = noise * torch.randn(2, 2, T, T, generator=seeded(seed), dtype=torch.float64)
    logits[..., :20, :6] += 5.0
    logits[..., 20:, :6] -= 6.0
    logits[..., 20:, 10:18] += 4.0
    return logits


def steady(seed: int = 2) -> Tensor:
    """Logits of heads that look at the same keys from beginning to end."""
    logits = 0.3 * torch.randn(2, 2, T, T, generator=seeded(seed), dtype=torch.float64)
    logits[..., [0, 5, 9, 14, 22, 30]] += 4.0
    return logits


def measured(logits: Tensor, policy: str, normalise: str = "none") -> object:
    above = torch.ones(T, T, dtype=torch.bool).triu(1)
    attention = torch.softmax(logits.masked_fill(above, -torch.inf), -1)
    return measure_kept(play_eviction(logits, 8, 6, policy, normalise) > 0, attention)


@pytest.mark.parametrize("policy", ["screening", "sinks"])
def test_a_planted_freeze_is_found(policy: str) -> None:
    found = measured(moving(), policy)
    assert bool(found.is_frozen.all())
    assert float(found.share_of_first.min()) > 0.6
    assert float(found.retention.max()) < 0.7


@pytest.mark.parametrize(("logits", "policy"), [(moving(), "window"), (steady(), "screening"), (steady(), "tova")])
def test_a_healthy_cache_is_left_alone(logits: Tensor, policy: str) -> None:
    assert not bool(measured(logits, policy).is_frozen.any())


def test_even_attention_is_no_freeze_although_the_first_stay() -> None:
    found = measured(torch.zeros(1, 1, T, T, dtype=torch.float64), "screening")
    assert float(found.share_of_first) == 1.0
    assert not bool(found.is_frozen)


def test_retention_is_one_for_the_oracle_and_for_who_forgets_nothing() -> None:
    logits = torch.randn(1, 1, 12, 12, generator=seeded(5), dtype=torch.float64)
    attention = torch.softmax(logits.masked_fill(torch.ones(12, 12, dtype=bool).triu(1), -torch.inf), -1)
    everything = torch.ones(1, 1, 12, 12, dtype=torch.bool).tril()
    torch.testing.assert_close(measure_kept(everything, attention).retention, torch.ones(1, 1, dtype=torch.float64))
    best = torch.zeros_like(everything).scatter(-1, attention.topk(3).indices, True) & everything
    torch.testing.assert_close(measure_kept(best, attention).retention, torch.ones(1, 1, dtype=torch.float64))
    by_hand = [float(attention[0, 0, t][best[0, 0, t]].sum()) for t in range(3, 12)]
    assert float(measure_kept(best, attention).attention_kept) == pytest.approx(sum(by_hand) / 9)


def test_the_histogram_counts_keys_at_the_end() -> None:
    found = measured(steady(), "window")
    expected = torch.zeros(10, dtype=torch.float64)
    for p in range(T - 14, T):
        expected[p * 10 // T] += 1 / 14
    torch.testing.assert_close(found.positions[0, 0], expected)


def test_shapes_are_named() -> None:
    held, maps = torch.ones(1, 2, 9, 9, dtype=torch.bool), torch.rand(1, 3, 9, 9)
    with pytest.raises(ShapeError, match="multiple of its 2 heads"):
        measure_kept(held, maps)
    with pytest.raises(InvalidInput, match="at least 8 steps"):
        measure_kept(held[..., :4, :4], torch.rand(1, 2, 4, 4))


def test_a_key_that_was_looked_at_later_than_when_it_was_new_can_freeze_as_well() -> None:
    """Six early keys are ignored at first, then used for a while, then never again; what all held is sums."""
    logits = torch.zeros(1, 1, T, T, dtype=torch.float64)
    logits[..., :12, :6] -= 4.0
    logits[..., 12:30, :6] += 5.0
    logits[..., 30:, :6] -= 6.0
    logits[..., 30:, 32:40] += 4.0
    assert bool(measured(logits, "heavy_hitter").is_frozen.all())
    assert not bool(measured(logits, "tova").is_frozen.any())


def test_an_even_beginning_freezes_too() -> None:
    """No key stands out at first, so the first stay; then eight others are looked at."""
    logits = torch.zeros(1, 1, T, T, dtype=torch.float64)
    logits[..., 30:, :] -= 4.0
    logits[..., 30:, 14:22] += 4.0
    assert bool(measured(logits, "sinks").is_frozen.all())
    assert not bool(measured(logits, "window").is_frozen.any())


def test_a_step_at_which_nothing_is_held_asks_nothing_of_the_oracle() -> None:
    attention = torch.softmax(torch.randn(1, 1, 12, 12, generator=seeded(4), dtype=torch.float64).tril(), -1)
    held = torch.zeros(1, 1, 12, 12, dtype=torch.bool)
    held[..., :3, :3] = torch.ones(3, 3, dtype=torch.bool).tril()
    held[..., 11, 11] = True
    found = measure_kept(held, attention)
    assert float(found.oracle_kept) == pytest.approx(float(attention[0, 0, 11].max()) / 9)
