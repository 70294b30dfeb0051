"""Bounded attention: the exact algorithm, chunks, gradients, beams, bad input."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import BoundedKeys, CacheSight, play_eviction, replay


def kept_by_step(logits: torch.Tensor, *options: object, **more: object) -> list[tuple[int, ...]]:
    """Positions (from 1) beyond the buffer after each step, first sample and head."""
    kept: list[tuple[int, ...]] = []

    def note(sight: CacheSight) -> None:
        outside = sight.positions[0, 0] <= sight.newest[0] - sight.n_buffer
        kept.append(tuple(sorted((sight.positions[0, 0][outside & (sight.positions[0, 0] >= 0)] + 1).tolist())))

    play_eviction(logits, *options, watch=note, **more)  # type: ignore[arg-type]
    return kept


@pytest.mark.parametrize(
    ("policy", "normalise"),
    [("screening", "none"), ("screening", "share"), ("screening", "mean"), ("attention", "none")],
)
def test_one_head_keeps_what_the_exact_algorithm_keeps(policy: str, normalise: str) -> None:
    for seed in range(3):
        weights = torch.rand(30, generator=seeded(seed), dtype=torch.float64) ** 4 + 1e-3
        kept = kept_by_step(weights.log().expand(1, 1, 30, 30), 4, 3, policy, normalise)
        assert kept == list(replay(weights, 4, 3, normalise).relevant)


def test_heavy_hitters_are_those_of_the_recurrent_networks() -> None:
    weights = torch.rand(30, generator=seeded(9), dtype=torch.float64) ** 4 + 1e-3
    kept = kept_by_step(weights.log().expand(1, 1, 30, 30), 4, 3, "heavy_hitter")
    assert kept == list(replay(weights, 4, 3, screening="heavy_hitter").relevant)


def test_the_worked_example_of_screening() -> None:
    weights = torch.tensor([1, 1, 4, 1, 1, 8, 1, 1, 1, 2, 1, 6], dtype=torch.float64)
    assert kept_by_step(weights.log().expand(1, 1, 12, 12), 2, 2)[-1] == (1, 3)
    assert kept_by_step(weights.log().expand(1, 1, 12, 12), 2, 2, "screening", "share")[-1] == (3, 6)


def test_scores_are_sums_over_a_plain_loop() -> None:
    """Several queries at once: only those less than n_buffer steps away count."""
    query, key = torch.randn(2, 1, 1, 9, 4, generator=seeded(3), dtype=torch.float64)
    weights = torch.softmax((query @ key.mT / 2).masked_fill(torch.ones(9, 9, dtype=bool).triu(1), -torch.inf), -1)
    keys = BoundedKeys(3, 6)
    keys.attend(query, key, key)
    expected = [sum(float(weights[0, 0, t, i]) for t in range(i, min(9, i + 3))) for i in range(9)]
    assert keys.held is not None
    torch.testing.assert_close(keys.held.scores[0, 0], torch.tensor(expected, dtype=torch.float64))


def test_heads_that_share_a_key_are_averaged() -> None:
    query = torch.randn(1, 4, 1, 6, generator=seeded(4), dtype=torch.float64)
    key = torch.randn(1, 2, 5, 6, generator=seeded(5), dtype=torch.float64)
    keys, seen = BoundedKeys(8, 0), []
    keys.attend(query.expand(1, 4, 5, 6), key, key)
    keys.watch = seen.append
    keys.attend(query, key[:, :, :1], key[:, :, :1])
    everything = torch.cat([key, key[:, :, :1]], 2)
    each = torch.softmax(query @ everything.repeat_interleave(2, 1).mT / 6**0.5, -1).squeeze(2)
    torch.testing.assert_close(seen[0].weights[0, :, 0], each[0].view(2, 2, 6).mean(1))


def test_sinks_stay_whatever_their_score() -> None:
    logits = torch.randn(1, 1, 20, 20, generator=seeded(6))
    logits[..., :2] = -9.0
    assert set(kept_by_step(logits, 4, 4, "screening", sinks=2)[-1]) >= {1, 2}
    assert not set(kept_by_step(logits, 4, 4, "screening")[-1]) >= {1, 2}


def test_append_only_never_lets_go_and_leaves_places_empty() -> None:
    logits = torch.zeros(1, 1, 30, 30)
    logits[..., [3, 11, 20]] = 4.0
    kept = kept_by_step(logits, 4, 2, "append_only")
    assert kept[-1] == (4, 12)
    assert all(set(before) <= set(after) for before, after in itertools.pairwise(kept))


def test_gradients_flow_to_keys_that_are_kept() -> None:
    query, key, value = torch.randn(3, 1, 2, 12, 4, generator=seeded(7), dtype=torch.float64)
    parts = [part.clone().requires_grad_() for part in (query, key, value)]
    keys = BoundedKeys(3, 2, prefill_chunk=1)
    keys.attend(*parts)[:, :, -1].sum().backward()
    assert parts[1].grad is not None
    used = (parts[1].grad.abs().sum(-1) > 0)[0]
    expected = torch.zeros(2, 12, dtype=bool).scatter(1, keys.kept_positions[0], True)
    assert torch.equal(used, expected)


def test_beams_can_be_reordered() -> None:
    data = torch.randn(3, 2, 2, 15, 4, generator=seeded(8))
    keys = BoundedKeys(4, 3)
    keys.attend(*data[..., :14, :])
    twin = copy.deepcopy(keys)
    twin.select(torch.tensor([1, 0, 1]))
    after = keys.attend(*data[..., 14:, :])
    swapped = twin.attend(*data[:, [1, 0, 1], :, 14:, :])
    torch.testing.assert_close(swapped, after[[1, 0, 1]])


def test_a_policy_with_something_of_its_own_is_not_reordered() -> None:
    with pytest.raises(InvalidInput, match="keeps something of its own"):
        BoundedKeys(4, 3, "random").select(torch.tensor([0]))


def test_nothing_in_nothing_out() -> None:
    keys = BoundedKeys(2, 2)
    empty = torch.zeros(1, 2, 0, 4)
    assert keys.attend(empty, empty, empty).shape == (1, 2, 0, 4)
    assert keys.n_kept == keys.seen == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_buffer": 0}, "n_buffer"),
        ({"n_relevant": -1}, "n_relevant"),
        ({"sinks": 5}, "sinks must be at most n_relevant = 3"),
        ({"prefill_chunk": 0}, "prefill_chunk"),
        ({"policy": "heavy_hiter"}, "Did you mean 'heavy_hitter'"),
        ({"policy": "tova", "normalise": "share"}, "normalise='share' is for the policies"),
        ({"normalise": "shares"}, "normalise"),
        ({"pad_lengths": torch.tensor([-1])}, "pad_lengths"),
    ],
)
def test_bad_settings_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        BoundedKeys(**{"n_buffer": 4, "n_relevant": 3, **options})


def test_bad_tokens_are_named() -> None:
    keys, x = BoundedKeys(4, 3), torch.zeros(2, 2, 5, 4)
    with pytest.raises(ShapeError, match="multiple of the key heads"):
        keys.attend(torch.zeros(2, 3, 5, 4), x, x)
    keys.attend(x, x, x)
    with pytest.raises(ShapeError, match="must continue a batch of 2"):
        keys.attend(x[:1], x[:1], x[:1])
    with pytest.raises(InvalidInput, match="not a number"):
        keys.attend(x * torch.nan, x, x)
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        play_eviction(torch.full((1, 1, 3, 3), torch.nan), 1, 1)
