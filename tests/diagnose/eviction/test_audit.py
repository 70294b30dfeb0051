"""The audit on models and caches of strangers as on our own."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterator
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


def test_a_prompt_read_at_once_is_not_counted_as_held(model: nn.CausalTransformer) -> None:
    assert cache_audit(model, TOKENS, {"x": lambda: nn.BoundedCache(3, 2)}, prefill=10).rows[0].largest == 5


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


class Scripted(torch.nn.Module):
    """A stranger's model that says what it was told: logits, and attention of two layers with four heads."""

    def __init__(self, logits: Tensor, attention: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.logits, self.attention, self.dropout = logits, attention, torch.nn.Dropout(0.5)

    def forward(self, input_ids: Tensor, past_key_values: Any = None, **_: Any) -> SimpleNamespace:
        if past_key_values is None:
            return SimpleNamespace(logits=self.dropout(self.logits), attentions=self.attention)
        start = past_key_values.seen
        past_key_values.seen += input_ids.shape[1]
        return SimpleNamespace(logits=self.dropout(self.logits[:, start : past_key_values.seen]))


class Telling:
    """A cache that tells what a function says of the number of tokens seen."""

    def __init__(self, tells: Callable[[int], Any]) -> None:
        self.seen, self._tells = 0, tells

    @property
    def kept_positions(self) -> Any:
        return self._tells(self.seen)


def scripted(t: int = 12, seed: int = 3) -> tuple[Scripted, Tensor]:
    generator = seeded(seed)
    logits = torch.randn(2, t, 5, generator=generator)
    maps = torch.randn(2, 2, 4, t, t, generator=generator).masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
    return Scripted(logits, tuple(maps.softmax(-1))), torch.randint(5, (2, t), generator=generator)


def everything(n: int) -> tuple[Tensor, ...]:
    return tuple(torch.arange(n).expand(2, 2, n) for _ in range(2))


def test_marks_and_retention_are_those_of_a_count_by_hand() -> None:
    model, tokens = scripted()
    generator = seeded(8)
    held = (torch.rand(12, 12, generator=generator) < 0.6).tril() | torch.eye(12, dtype=torch.bool)
    marked, scored = torch.rand(2, 12, generator=generator) < 0.4, torch.rand(2, 12, generator=generator) < 0.5
    marked[:, 0] = scored[:, 3] = True

    def tells(n: int) -> tuple[Tensor, ...]:
        return tuple(held[n - 1].nonzero().squeeze(1).expand(2, 2, -1) for _ in range(2))

    row = cache_audit(model, tokens, {"x": lambda: Telling(tells)}, scored=scored, marked=marked).rows[0]
    wanted = [(b, t, p) for b in range(2) for t in range(11) for p in range(t + 1) if scored[b, t] and marked[b, p]]
    assert row.marked_kept == pytest.approx(sum(bool(held[t, p]) for _, t, p in wanted) / len(wanted), abs=1e-12)
    parts = []
    for layer in model.attention:
        for pair in layer.double().unflatten(1, (2, 2)).mean(2).flatten(0, 1):
            short = [t for t in range(12) if int(held[t].sum()) <= t]
            kept = sum(float(pair[t][held[t]].sum()) for t in short)
            parts.append(kept / sum(float(pair[t].sort(descending=True).values[: held[t].sum()].sum()) for t in short))
    assert row.retention == pytest.approx(sum(parts) / len(parts), abs=1e-12)


@pytest.mark.parametrize(
    ("tells", "said"),
    {
        "fewer layers": (lambda n: everything(n)[:1], "1 layer"),
        "more layers": (lambda n: everything(n) * 2, "4 layers"),
        "no layers": (lambda _: (), "0 layers"),
        "two dimensions": (lambda n: tuple(part[0] for part in everything(n)), r"kept_positions .*\(2, 1\)"),
        "another batch": (lambda n: tuple(part[:1] for part in everything(n)), r"kept_positions .*\(1, 2, 1\)"),
        "beyond the end": (lambda n: tuple(part + 40 for part in everything(n)), "position 40 .* 1 token"),
        "of the future": (lambda n: tuple(part + 1 for part in everything(n)), "position 1 .* 1 token"),
        "fractions": (lambda n: tuple(part / 2 for part in everything(n)), "kept_positions .*whole numbers"),
        "lists": (lambda n: [part.tolist() for part in everything(n)], r"kept_positions .*layer 0 has \["),
        "a bare tensor": (lambda n: everything(n)[0], r"kept_positions .*\(2, 1\)"),
        "nothing at first": (lambda n: None if n < 5 else everything(n), "after every call"),
        "heads that vary": (lambda n: tuple(part[:, : 1 + n % 2] for part in everything(n)), "kept_positions"),
    }.values(),
)
def test_what_a_cache_tells_is_checked(tells: Callable[[int], Any], said: str) -> None:
    model, tokens = scripted()
    with pytest.raises(InvalidInput, match=said):
        cache_audit(model, tokens, {"theirs": lambda: Telling(tells)})


def test_makers_models_and_logits_are_checked() -> None:
    model, tokens = scripted()
    fine: dict[str, Callable[[], Any]] = {"x": lambda: Telling(everything)}
    used, unchecked = Telling(everything), inspect.unwrap(cache_audit)  # as users call it, without checks of types
    for caches, said in (
        ({"x": Telling(everything)}, "'x' must be a function that makes a cache"),
        ({"x": lambda: None}, "'x' must make a cache; it made None"),
        ({"x": lambda: used, "y": lambda: used}, "'y' made a cache that was used before"),
    ):
        with pytest.raises(InvalidInput, match=said):
            unchecked(model, tokens, caches)
    with pytest.raises(InvalidInput, match="model must be callable"):
        cache_audit(None, tokens, fine)
    with pytest.raises(InvalidInput, match=r"logits .*not numbers"):
        cache_audit(Scripted(model.logits * math.nan, model.attention), tokens, fine)
    with pytest.raises(InvalidInput, match="attention must not hold NaN"):
        cache_audit(Scripted(model.logits, tuple(part * math.nan for part in model.attention)), tokens, fine)
    with pytest.raises(InvalidInput, match=r"logits .*\(2, 5, 5\)"):
        cache_audit(Scripted(model.logits[:, :5], model.attention), tokens, fine)
    with pytest.raises(InvalidInput, match="tokens must be below 2"):
        cache_audit(Scripted(model.logits[..., :2], model.attention), tokens, fine)
    for wrong in (torch.ones(2, 12, dtype=torch.int64), torch.ones(2, 12)):
        with pytest.raises(InvalidInput, match="marked must be"):
            unchecked(model, tokens, fine, marked=wrong)
        with pytest.raises(InvalidInput, match="scored must be"):
            unchecked(model, tokens, fine, scored=wrong)


def test_a_model_left_in_training_mode_is_judged_without_dropout_and_left_so() -> None:
    model, tokens = scripted()
    model.dropout.p = 0.9
    row = cache_audit(model, tokens, {"x": lambda: Telling(everything)}).rows[0]
    assert row.loss_gap == 0.0
    seen = []

    class Attached(Telling):
        def attached_to(self, network: Any) -> contextlib.AbstractContextManager[None]:
            seen.append(network.training)
            return contextlib.nullcontext()

    cache_audit(model, tokens, {"x": lambda: Attached(everything)})
    assert seen == [False]  # a cache that refuses training mode is not asked in it
    assert model.training
    assert model.dropout.training
