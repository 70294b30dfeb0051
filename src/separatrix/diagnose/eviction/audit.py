"""The audit of caches that forget: any model, any policy, at equal budget."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.result import Result, frame
from separatrix.core.scalars import in_words

from .measures import KeptMeasures, measure_kept
from .runs import CacheRun, run_cache, run_unbounded

if TYPE_CHECKING:
    import pandas

STARTUP = 0.8
"""Part of the old keys that are the very first positions, from which on a start-up bias is named."""
FROZEN_HEADS = 0.25
"""Part of all heads, frozen, from which on the policy is called so."""
UNLIKE = 0.05
"""Nats by which a cache may differ from the unbounded model before it is called a loss."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CacheRow(Result):
    """One cache. What could not be measured is NaN."""

    name: str
    largest: int
    """Most keys that a head held after any call; -1 if the cache does not tell."""
    loss: float
    """Mean negative log-likelihood of the scored tokens, in nats."""
    accuracy: float
    """Part of the scored tokens that were foretold."""
    loss_gap: float
    """Loss above that of the model without a bound."""
    retention: float
    """Attention on keys that were held, as a part of what an oracle with as many keys would hold."""
    marked_kept: float
    """Part of the marked positions that were held, at scored queries and on the average over heads."""
    share_of_first: float
    """Of the old half of the keys held at the end, the part that are the very first positions."""
    first_by_chance: float
    """The same if the old keys were any of the first half."""
    frozen_heads: float
    """Part of the heads that hold on to keys nobody looks at, while others are missed."""
    tokens_per_second: float
    """Of one sequence, by processor time."""
    positions: Float[Tensor, " bins"]
    """Histogram of the positions held at the end."""

    @property
    def is_frozen(self) -> bool:
        """Whether the policy froze in enough heads to be named."""
        return self.frozen_heads >= FROZEN_HEADS

    def findings(self) -> tuple[str, ...]:
        """What should be known about this cache, in sentences."""
        found = []
        if self.loss_gap > UNLIKE:
            found.append(f"costs {self.loss_gap:.3f} nats a token")
        if self.is_frozen:
            found.append(
                f"frozen heavy hitters in {self.frozen_heads:.0%} of the heads: most of their old keys were looked at "
                "once and are idle now, while others are missed"
            )
        if self.share_of_first >= STARTUP and self.first_by_chance < STARTUP / 2:
            found.append(f"start-up bias: {self.share_of_first:.0%} of its old keys are the very first positions")
        return tuple(found)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CacheAudit(Result):
    """All caches beside the model without a bound."""

    rows: tuple[CacheRow, ...]
    unbounded_loss: float
    unbounded_accuracy: float
    n_tokens: int

    def row(self, name: str) -> CacheRow:
        """The row of a cache."""
        for row in self.rows:
            if row.name == name:
                return row
        raise InvalidInput(
            f"there is no cache {name!r} in this audit; there are {', '.join(r.name for r in self.rows)}."
        )

    def to_frame(self) -> pandas.DataFrame:
        """One row a cache."""
        return frame([{k: v for k, v in row.to_dict().items() if k != "positions"} for row in self.rows])

    def __repr__(self) -> str:
        head = (
            f"CacheAudit over {self.n_tokens} tokens; without a bound loss {self.unbounded_loss:.4f}, accuracy "
            f"{self.unbounded_accuracy:.3f}"
        )
        names = max((len(row.name) for row in self.rows), default=4)
        lines = [f"  {'cache':<{names}}  keys    loss  right  retention  marked  first  frozen  tokens/s"]
        for row in self.rows:
            numbers = (row.accuracy, row.retention, row.marked_kept, row.share_of_first, row.frozen_heads)
            right, kept, marked, first, frozen = ("    -" if math.isnan(x) else f"{x:5.3f}" for x in numbers)
            lines.append(
                f"  {row.name:<{names}}  {row.largest:>4}  {row.loss:6.4f}  {right}      {kept}   {marked}  {first}   "
                f"{frozen}  {row.tokens_per_second:8.1f}"
            )
        lines += [f"  {row.name}: {sentence}." for row in self.rows for sentence in row.findings()]
        return "\n".join([head, *lines])


def cache_audit(
    model: Any,
    tokens: Int[Tensor, "batch t"],
    caches: Mapping[str, Callable[[], Any]],
    *,
    scored: Bool[Tensor, "batch t"] | None = None,
    marked: Bool[Tensor, "batch t"] | None = None,
    prefill: int = 1,
) -> CacheAudit:
    """Compare caches on given tokens: what they cost, what they keep, whether they froze, and how fast they are.

    Args:
        model: called as ``model(input_ids=..., past_key_values=cache, use_cache=True)`` with a result that has
            ``logits``. If a call with ``output_attentions=True`` and no cache returns ``attentions``, what is kept is
            held against them.
        tokens: sequences of at least 8 tokens.
        caches: by name, what makes a new cache. A cache is any object that the model takes; two attributes are used if
            it has them: ``attached_to(model)``, a context for the run, and ``kept_positions``, for each layer the
            positions held by every head (batch, heads, k), -1 for none.
        scored: queries whose next token counts for loss and accuracy; all if not given. The last has no next one.
        marked: positions that matter, as the task knows: the oracle of ``marked_kept``.
        prefill: tokens of the first call.

    Cost: for every cache, t calls of the model, and maps of (t, t) for every layer and head.
    """
    if not caches:
        raise InvalidInput("caches must hold at least one way to make a cache; it is empty.")
    if tokens.ndim != 2 or tokens.shape[1] < 8:
        raise ShapeError(f"tokens must be (batch, t) with at least 8 steps; got {tuple(tokens.shape)}.")
    chosen = _chosen(scored, tokens)
    if marked is not None and (not _is_mask(marked, tokens) or not bool(marked.any(1).all())):
        raise InvalidInput(f"marked must be booleans {tuple(tokens.shape)} with a mark in every sequence.")
    _require_makers(model, caches)
    plain, attention = run_unbounded(model, tokens)
    loss, accuracy = _quality(plain, tokens, chosen)
    rows, made = [], []  # type: ignore[var-annotated]
    for name, build in caches.items():
        made.append(_new_cache(name, build, made))
        run = run_cache(model, tokens, made[-1], prefill=prefill)
        rows.append(_row(name, run, (tokens, chosen, marked), attention, loss))
    return CacheAudit(tuple(rows), loss, accuracy, tokens.numel())


def _require_makers(model: Any, caches: Mapping[str, Any]) -> None:
    if not callable(model):
        raise InvalidInput(f"model must be callable; got {in_words(model)}.")
    for name, build in caches.items():
        if not callable(build):
            raise InvalidInput(
                f"caches: {name!r} must be a function that makes a cache, as lambda: RelevanceCache(8, 8) is; got "
                f"{in_words(build)}."
            )


def _new_cache(name: str, build: Callable[[], Any], before: list[Any]) -> Any:
    """A cache without a past: what one run left in it would be counted in the next."""
    cache = build()
    if cache is None:
        raise InvalidInput(f"caches: {name!r} must make a cache; it made None.")
    seen = getattr(cache, "get_seq_length", None)
    if any(cache is other for other in before) or (callable(seen) and seen()):
        raise InvalidInput(f"caches: {name!r} made a cache that was used before; every run needs a new one.")
    return cache


def _is_mask(given: Tensor, tokens: Tensor) -> bool:
    return given.shape == tokens.shape and given.dtype == torch.bool


def _chosen(scored: Tensor | None, tokens: Tensor) -> Tensor:
    chosen = torch.ones_like(tokens, dtype=torch.bool) if scored is None else scored
    if not _is_mask(chosen, tokens) or not bool(chosen[:, :-1].any()):
        raise InvalidInput(f"scored must be booleans {tuple(tokens.shape)} and choose a query that has a next token.")
    return chosen[:, :-1]


def _quality(logits: Tensor, tokens: Tensor, chosen: Tensor) -> tuple[float, float]:
    """Loss and accuracy of the scored tokens."""
    foretold, truth = logits[:, :-1][chosen].to(torch.float64), tokens[:, 1:][chosen]
    right = (foretold.argmax(-1) == truth).to(torch.float64).mean()
    return float(functional.cross_entropy(foretold, truth)), float(right)


def _row(
    name: str, run: CacheRun, given: tuple[Tensor, Tensor, Tensor | None], attention: Any, base: float
) -> CacheRow:
    tokens, chosen, marked = given
    loss, accuracy = _quality(run.logits, tokens, chosen)
    measured = _measures(run, attention)
    half, largest = tokens.shape[1] // 2, run.largest
    old = [] if run.present is None else [layer[..., -1, :half].to(torch.float64) for layer in run.present]
    return CacheRow(
        name=name,
        largest=-1 if largest is None else largest,
        loss=loss,
        accuracy=accuracy,
        loss_gap=loss - base,
        retention=_mean([m.retention for m in measured]),
        marked_kept=_marked_kept(run, chosen, marked),
        share_of_first=_mean([m.share_of_first for m in measured]),
        first_by_chance=_mean(old),
        frozen_heads=_mean([m.is_frozen.to(torch.float64) for m in measured]),
        tokens_per_second=tokens.shape[1] / run.seconds if run.seconds > 0 else math.nan,
        positions=torch.stack([m.positions.mean((0, 1)) for m in measured]).mean(0) if measured else torch.zeros(0),
    )


def _measures(run: CacheRun, attention: Any) -> list[KeptMeasures]:
    if run.present is None or attention is None:
        return []
    told, given = len(run.present), len(attention)
    if told != given:
        raise InvalidInput(
            f"kept_positions of the cache is of {told} layer{'' if told == 1 else 's'}; the model gives attention of "
            f"{given}."
        )
    return [measure_kept(held, weights.cpu()) for held, weights in zip(run.present, attention, strict=True)]


def _mean(numbers: list[Tensor]) -> float:
    return float(torch.stack([n.to(torch.float64).mean() for n in numbers]).mean()) if numbers else math.nan


def _marked_kept(run: CacheRun, chosen: Tensor, marked: Tensor | None) -> float:
    """Over scored queries, the part of the marked positions before them that every head held."""
    if run.present is None or marked is None:
        return math.nan
    t = marked.shape[1]
    before = marked[:, None, :] & torch.ones(t, t, dtype=torch.bool).tril()
    counted = before & functional.pad(chosen, (0, 1)).unsqueeze(2)
    wanted = counted.sum()
    if not bool(wanted):
        return math.nan
    hits = [float((layer & counted.unsqueeze(1)).sum()) / (int(wanted) * layer.shape[1]) for layer in run.present]
    return sum(hits) / len(hits)
