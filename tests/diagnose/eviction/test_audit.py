"""The audit on models and caches of strangers as on our own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix import nn
from separatrix.core import InvalidInput, ShapeError
from separatrix.diagnose import cache_audit

TOKENS = torch.randint(11, (2, 24), generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def model() -> nn.CausalTransformer:
    made = nn.CausalTransformer(11, 16, n_heads=4, n_key_heads=2, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(6.0 if weight.ndim == 2 else 1.0)
    return made


class WindowOfAStranger:
    """Another library's cache: no policy object, a context of its own, positions in its own order."""

    def __init__(self, size: int) -> None:
        self.size, self.seen, self.entered = size, 0, 0

    @contextmanager
    def attached_to(self, model: Any) -> Iterator[None]:
        self.entered += 1
        yield

    @property
    def kept_positions(self) -> tuple[Tensor, ...]:
        newest = torch.arange(self.seen - 1, self.seen - 1 - self.size, -1)
        return (torch.where(newest < 0, -1, newest).expand(2, 1, -1),)


class CountingModel(torch.nn.Module):
    """A stranger's model without attention: foretells the symbol after the present one."""

    def forward(self, input_ids: Tensor, past_key_values: Any = None, **_: Any) -> SimpleNamespace:
        if past_key_values is not None:
            past_key_values.seen += input_ids.shape[1]
        return SimpleNamespace(logits=torch.nn.functional.one_hot((input_ids + 1) % 11, 11) * 9.0)


def test_a_large_cache_costs_nothing_and_a_small_one_is_counted(model: nn.CausalTransformer) -> None:
    audit = cache_audit(
        model,
        TOKENS,
        {"large": lambda: nn.BoundedCache(24, 0), "small": lambda: nn.BoundedCache(3, 2, "window")},
        marked=torch.arange(24).lt(4).expand(2, 24),
    )
    large, small = audit.rows
    assert abs(large.loss_gap) < 1e-6
    assert (large.largest, small.largest) == (24, 5)
    assert large.retention == pytest.approx(1.0)
    assert large.marked_kept == 1.0
    assert small.marked_kept < 0.5
    assert small.retention < 1
    assert audit.to_frame().shape[0] == 2
    assert "small" in repr(audit)
    assert audit.row("small") is small


def test_start_up_bias_is_named() -> None:
    flat = nn.CausalTransformer(11, 16, n_heads=2, generator=seeded(1))
    caches = {"none": lambda: nn.BoundedCache(3, 3), "window": lambda: nn.BoundedCache(3, 3, "window")}
    audit = cache_audit(flat, TOKENS, caches)
    assert any("start-up bias" in sentence for sentence in audit.row("none").findings())
    assert not any("start-up bias" in sentence for sentence in audit.row("window").findings())
    assert not audit.row("none").is_frozen


def test_strangers_are_audited_by_what_they_offer() -> None:
    cache, counting = WindowOfAStranger(5), CountingModel()
    tokens = (torch.arange(20) + torch.tensor([[0], [3]])) % 11
    audit = cache_audit(counting, tokens, {"theirs": lambda: cache, "mute": lambda: SimpleNamespace(seen=0)})
    theirs, mute = audit.rows
    assert cache.entered == 1
    assert (theirs.accuracy, theirs.largest, mute.largest) == (1.0, 5, -1)
    assert math.isnan(theirs.retention)  # the model gives no attention
    assert math.isnan(mute.marked_kept)


def test_a_policy_of_another_library_needs_one_line(model: nn.CausalTransformer) -> None:
    def knorm(keys: Tensor, **_: Any) -> Tensor:
        """As another library has it: scores (batch, heads, keys), high stays."""
        return -keys.norm(dim=-1)

    adapted = nn.ScoredBy(lambda sight: knorm(sight.keys))
    audit = cache_audit(model, TOKENS, {"knorm": lambda: nn.BoundedCache(3, 4, adapted)})
    assert audit.rows[0].largest == 7


def test_prefill_gives_the_same_where_nothing_is_forgotten(model: nn.CausalTransformer) -> None:
    losses = [
        cache_audit(model, TOKENS, {"x": lambda: nn.BoundedCache(30, 0)}, prefill=n).rows[0].loss for n in (1, 9, 24)
    ]
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-6)


def test_bad_input_is_named(model: nn.CausalTransformer) -> None:
    caches = {"x": lambda: nn.BoundedCache(3, 2)}
    with pytest.raises(InvalidInput, match="caches must hold"):
        cache_audit(model, TOKENS, {})
    with pytest.raises(ShapeError, match="at least 8 steps"):
        cache_audit(model, TOKENS[:, :5], caches)
    with pytest.raises(InvalidInput, match="scored must be"):
        cache_audit(model, TOKENS, caches, scored=torch.zeros(2, 24, dtype=torch.bool))
    with pytest.raises(InvalidInput, match="marked must be"):
        cache_audit(model, TOKENS, caches, marked=torch.zeros(2, 24, dtype=torch.bool))
    with pytest.raises(InvalidInput, match="must return an object with logits"):
        cache_audit(lambda **_: torch.zeros(1), TOKENS, caches)
