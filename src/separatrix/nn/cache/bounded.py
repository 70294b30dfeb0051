"""Attention over a bounded set of keys: the newest ones, and those that a policy keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.scalars import in_words

from ..memory.keeping.slots import sorted_index
from .eviction import AbstractEviction, CacheSight
from .held import Held
from .places import weakest
from .policies import find_eviction


@final
@suggest_options
class BoundedKeys(Described):
    """Keys and values of one attention layer, never more than ``n_buffer + n_relevant`` a head after a call.

    One token at a time this is relevancy screening to the letter: the key that leaves the buffer is judged, then the
    query attends to the buffer (itself included) and the kept keys, then the policy changes the scores. Of several
    tokens at once, the keys that leave with the first are judged before, all others after the call: the tokens see all
    keys of their own call that came before them.

    Args:
        n_buffer: how many of the newest keys are always kept.
        n_relevant: how many stay beyond them.
        policy: a name of ``EVICTIONS`` or ``SCREENINGS``, or a policy: any object with ``observe(sight)``.
        normalise: for the policies ``"screening"`` and ``"heavy_hitter"``.
        sinks: how many of the first keys always stay; they count among ``n_relevant``.
        prefill_chunk: how many tokens are taken at once; all of a call if not given. 1 is the exact algorithm.
        pad_lengths: how many tokens at the left of each sequence are padding, (batch,).

    Source: kerg2022, section 4.5, Algorithm 1, for keys per head instead of hidden states.

    Cost: a call of q tokens takes q (n_buffer + n_relevant + c) products a head, c the smaller of q and
    ``prefill_chunk``.

    Example:
        >>> keys = BoundedKeys(n_buffer=2, n_relevant=1, policy="window")
        >>> x = torch.ones(1, 1, 5, 4)
        >>> _ = keys.attend(x, x, x)
        >>> keys.kept_positions
        tensor([[[2, 3, 4]]])
    """

    def __init__(
        self,
        n_buffer: int,
        n_relevant: int,
        policy: Any = "screening",
        normalise: str = "none",
        *,
        sinks: int = 0,
        prefill_chunk: int | None = None,
        pad_lengths: Int[Tensor, " batch"] | None = None,
    ) -> None:
        self.n_buffer = require_integer(n_buffer, "n_buffer", at_least=1)
        self.n_relevant = require_integer(n_relevant, "n_relevant", at_least=0)
        self.sinks = require_integer(sinks, "sinks", at_least=0)
        if self.sinks > self.n_relevant:
            raise InvalidInput(
                f"sinks must be at most n_relevant = {self.n_relevant}, of which they are a part; got {sinks}."
            )
        chunk = None if prefill_chunk is None else require_integer(prefill_chunk, "prefill_chunk", at_least=1)
        self.prefill_chunk = chunk
        self.policy: AbstractEviction = find_eviction(policy, normalise)
        self.pad_lengths = None if pad_lengths is None else _checked_padding(pad_lengths)
        self.watch: Callable[[CacheSight], None] | None = None
        """Called with every sight after the policy has changed the scores; what it is given must not be changed."""
        self.reset()

    @property
    def budget(self) -> int:
        """Most keys a head keeps."""
        return self.n_buffer + self.n_relevant

    def reset(self) -> None:
        """Forget everything but the settings."""
        self.seen = 0
        self.held: Held | None = None
        self._has_empty = self.pad_lengths is not None
        self._own = self.policy.begin()

    @property
    def n_kept(self) -> int:
        """Places that are held at present."""
        return 0 if self.held is None else self.held.count

    @property
    def kept_positions(self) -> Int[Tensor, "batch heads k"]:
        """Positions of all keys in ascending order, -1 for empty places at the end."""
        return torch.zeros(0, 0, 0, dtype=torch.int64) if self.held is None else sorted_index(self.held.positions)

    def attend(
        self,
        query: Float[Tensor, "batch qheads q d"],
        key: Float[Tensor, "batch heads q d"],
        value: Float[Tensor, "batch heads q v"],
        scaling: float | None = None,
    ) -> Float[Tensor, "batch qheads q v"]:
        """Take in the newest tokens and attend, each to what came before and is still there.

        Args:
            query: with a multiple of the heads of ``key``; neighbours share a key head.
            key: of the same tokens, with positions already in them (rotary).
            value: of the same tokens.
            scaling: of the products; one over the root of the key size if not given.
        """
        self._require_shapes(query, key, value)
        scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
        size = max(1, query.shape[2]) if self.prefill_chunk is None else self.prefill_chunk
        outputs = []
        for start in range(0, query.shape[2], size):
            part = slice(start, start + size)
            outputs.append(self._attend_to(query[:, :, part], key[:, :, part], value[:, :, part], scaling))
        if not outputs:
            return query.new_zeros(*query.shape[:3], value.shape[-1])
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 2)

    def _attend_to(self, query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
        count = key.shape[2]
        queries = self._next_positions(len(key), count, key.device)
        held = self._with(Held.new(key, value, queries), queries[:, 0])
        weights = self._weights(query, held, queries, scaling)
        output = weights.to(query.dtype) @ held.values.unsqueeze(2)
        self._observe(weights.detach().mean(2), held, queries)
        self.held = self._shrunk(held, self.budget, queries[:, -1]) if count > 1 else held
        self.seen += count
        return output.flatten(1, 2)

    def _next_positions(self, batch: int, count: int, device: torch.device) -> Tensor:
        steps = torch.arange(self.seen, self.seen + count, device=device).expand(batch, count)
        return steps if self.pad_lengths is None else steps - self.pad_lengths.to(device).unsqueeze(1)

    def _with(self, new: Held, now: Tensor) -> Held:
        """Take in new tokens: one takes the place of who leaves; before several, who leaves with the first goes."""
        if self.held is None:
            return new.cloned()
        if new.count > 1:
            return self._shrunk(self.held, self.budget - 1, now).extended(new)
        rank = self.held.rank(now, self.n_buffer, self.sinks)
        held = self._marked(self.held, rank)
        place, is_empty = weakest(held.positions, rank)
        if held.count >= self.budget or bool(is_empty.all()):
            return held.replaced(place, new)
        return held.extended(new)

    def _shrunk(self, held: Held, count: int, now: Tensor) -> Held:
        """The best ``count`` keys of every head."""
        rank = held.rank(now, self.n_buffer, self.sinks)
        held = self._marked(held, rank)
        return held.best(rank, count) if held.count > count or self._has_empty else held

    def _marked(self, held: Held, rank: Tensor) -> Held:
        marked = held.without_refused(rank)
        self._has_empty = self._has_empty or marked is not held
        return marked

    def _weights(self, query: Tensor, held: Held, queries: Tensor, scaling: float) -> Tensor:
        """Attention (batch, heads, group, q, k)."""
        grouped = query.unflatten(1, (held.keys.shape[1], -1))
        logits = (grouped.flatten(2, 3) @ held.keys.mT * scaling).view(*grouped.shape[:4], -1)
        if queries.shape[1] > 1 or self._has_empty:
            now, there = queries[:, None, :, None], held.positions.unsqueeze(2)
            visible = ((there >= 0) & (there <= now)) | (now < 0)  # padding sees anything, so that no row is empty
            logits = logits.masked_fill(~visible.unsqueeze(2), -torch.inf)
        return torch.softmax(logits, -1, dtype=torch.promote_types(query.dtype, torch.float32))

    def _observe(self, weights: Tensor, held: Held, queries: Tensor) -> None:
        if self.pad_lengths is not None:
            weights = torch.where((queries >= 0)[:, None, :, None], weights, 0.0)
        sight = CacheSight(
            weights=weights,
            positions=held.positions,
            queries=queries,
            n_buffer=self.n_buffer,
            keys=held.keys.detach(),
            values=held.values.detach(),
            scores=held.scores,
            own=self._own,
        )
        before = _changes(sight)
        with torch.no_grad():
            self.policy.observe(sight)
        if _changes(sight) != before:
            raise InvalidInput(
                f"the policy {self.policy.name!r} changed what it was shown; it may change scores in place and nothing "
                "else."
            )
        if bool(held.scores.isnan().any()):
            raise InvalidInput(
                f"the policy {self.policy.name!r} gave a score that is not a number; so is the attention of the model, "
                "or the policy divides by zero."
            )
        if self.watch is not None:
            self.watch(sight)

    def select(self, samples: Int[Tensor, " chosen"]) -> None:
        """Go on with some of the sequences, in a new order or repeated: what beam search needs."""
        if self._own is not None:
            raise InvalidInput(
                f"the policy {self.policy.name!r} keeps something of its own along a sequence; it cannot be reordered."
            )
        if self.pad_lengths is not None:
            self.pad_lengths = self.pad_lengths[samples.to(self.pad_lengths.device)]
        if self.held is not None:
            self.held = self.held.selected(samples)

    def _require_shapes(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
        if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
            raise ShapeError(f"query, key and value must be (batch, heads, tokens, size); got {shapes}.")
        fits = query.shape[0] == key.shape[0] and query.shape[2:] == key.shape[2:] and key.shape[:3] == value.shape[:3]
        if not fits or not key.shape[1] or query.shape[1] % key.shape[1]:
            raise ShapeError(
                f"query, key and value must be of the same tokens, with a multiple of the key heads; got {shapes}."
            )
        before = None if self.held is None else self.held.keys
        if before is not None and (before.shape[:2] != key.shape[:2] or before.shape[3] != key.shape[3]):
            raise ShapeError(
                f"key must continue a batch of {before.shape[0]} with {before.shape[1]} heads of size "
                f"{before.shape[3]}; got {tuple(key.shape)}."
            )
        if self.pad_lengths is not None and len(self.pad_lengths) != len(key):
            raise ShapeError(f"pad_lengths is for a batch of {len(self.pad_lengths)}; got one of {len(key)}.")


def _changes(sight: CacheSight) -> tuple[Any, ...]:
    """How often what a policy is shown was written to, as far as torch counts it, and the shape of the scores."""
    shown = (sight.weights, sight.positions, sight.queries, sight.keys, sight.values)
    written = tuple(0 if part.is_inference() else part._version for part in shown)
    return (*written, sight.scores.shape)


def _checked_padding(lengths: Any) -> Tensor:
    given = torch.as_tensor(lengths)
    if given.ndim != 1 or given.is_floating_point() or given.dtype == torch.bool or bool((given < 0).any()):
        raise InvalidInput(
            f"pad_lengths must be whole numbers of at least 0, one per sequence; got {in_words(lengths)}."
        )
    return given.to(torch.int64)


def play_eviction(
    logits: Float[Tensor, "batch heads t t"],
    n_buffer: int,
    n_relevant: int,
    policy: Any = "screening",
    normalise: str = "none",
    *,
    sinks: int = 0,
    watch: Callable[[CacheSight], None] | None = None,
) -> Float[Tensor, "batch heads t t"]:
    """Attention under a bounded cache where the logits of every query and key are given: no model, any policy.

    Args:
        logits: of query (row) and key (column); entries above the diagonal are ignored.
        n_buffer: as for ``BoundedKeys``, like the arguments after it.
        n_relevant: keys beyond the buffer.
        policy: a name or a policy.
        normalise: for the policies that sum attention.
        sinks: first keys that always stay.
        watch: called with the sight of every step.

    Returns:
        The weights, 0 where a key had been forgotten.

    Cost: t steps of a cache whose keys have t entries.

    Example:
        >>> kept = play_eviction(torch.zeros(1, 1, 6, 6), n_buffer=2, n_relevant=1)
        >>> (kept[0, 0, -1] > 0).nonzero().squeeze(1).tolist()
        [0, 4, 5]
    """
    if logits.ndim != 4 or logits.shape[-1] != logits.shape[-2]:
        raise ShapeError(f"logits must be (batch, heads, t, t); got {tuple(logits.shape)}.")
    if bool((logits.tril().isnan() | (logits.tril() == torch.inf)).any()):
        raise InvalidInput("logits must not hold NaN or infinity below the diagonal; minus infinity is allowed.")
    memory = BoundedKeys(n_buffer, n_relevant, policy, normalise, sinks=sinks, prefill_chunk=1)
    memory.watch = watch
    size = logits.shape[-1]
    one_hot = torch.eye(size, dtype=logits.dtype, device=logits.device).expand(*logits.shape[:2], size, size)
    finite = logits.tril().clamp_min(torch.finfo(logits.dtype).min / 4)  # minus infinity times 0 is not a number
    return memory.attend(finite, one_hot, one_hot, scaling=1.0)
