"""A model run under a cache, token by token: what it foretold, what was held, and the time it took."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.result import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CacheRun(Result):
    """One pass over given tokens."""

    logits: Float[Tensor, "batch t symbols"]
    present: tuple[Bool[Tensor, "batch heads t t"], ...] | None
    """For each layer, which key was held after each query; ``None`` if the cache does not tell."""
    seconds: float
    """Processor time of the calls of the model."""

    @property
    def largest(self) -> int | None:
        """Most keys that a head held after any step."""
        return None if self.present is None else max(int(layer.sum(-1).max()) for layer in self.present)


@torch.no_grad()
def run_cache(model: Any, tokens: Int[Tensor, "batch t"], cache: Any, *, prefill: int = 1) -> CacheRun:
    """Feed given tokens to a model under a cache.

    Args:
        model: called as ``model(input_ids=..., past_key_values=cache, use_cache=True)``; its result has ``logits``.
        tokens: the sequences.
        cache: whatever the model takes. If it has ``attached_to(model)``, the run takes place in that context; if it
            has ``kept_positions`` (for each layer the positions held by every head, -1 for none), they are noted.
        prefill: tokens of the first call; one each afterwards.

    Cost: t - prefill + 1 calls of the model.
    """
    if tokens.ndim != 2 or tokens.shape[1] < 2 or tokens.is_floating_point():
        raise ShapeError(f"tokens must be whole numbers (batch, t) with at least two steps; got {tuple(tokens.shape)}.")
    prefill = min(require_integer(prefill, "prefill", at_least=1), tokens.shape[1])
    attached = getattr(cache, "attached_to", None)
    context = contextlib.nullcontext() if attached is None else attached(model)
    sizes = [prefill, *[1] * (tokens.shape[1] - prefill)]
    outputs, kept, seconds, end = [], [], 0.0, 0
    with context:
        for part in tokens.split(sizes, 1):
            began = time.process_time()
            found = model(input_ids=part, past_key_values=cache, use_cache=True)
            seconds += time.process_time() - began
            outputs.append(_logits(found))
            end += part.shape[1]
            kept.append((end, getattr(cache, "kept_positions", None)))
    known = None if kept[-1][1] is None else _presence(kept, tokens.shape[1], prefill)
    return CacheRun(torch.cat(outputs, 1), known, seconds)


def _logits(found: Any) -> Tensor:
    logits = getattr(found, "logits", None)
    if not isinstance(logits, Tensor):
        raise InvalidInput(f"model must return an object with logits; got {type(found).__name__}.")
    return logits


def _presence(kept: list[tuple[int, Any]], t: int, prefill: int) -> tuple[Tensor, ...]:
    """Positions after each call as a table of queries and keys; queries of the first call saw all before them."""
    layers = []
    for layer in range(len(kept[-1][1])):
        batch, heads, _ = kept[-1][1][layer].shape
        table = torch.zeros(batch, heads, t, t + 1, dtype=torch.bool)
        table[:, :, : prefill - 1, :t] = torch.ones(t, t, dtype=torch.bool).tril()[: prefill - 1]
        for end, positions in kept:
            held = positions[layer].cpu()
            table[:, :, end - 1].scatter_(2, torch.where(held < 0, t, held), True)
        layers.append(table[..., :t])
    return tuple(layers)


@torch.no_grad()
def run_unbounded(model: Any, tokens: Int[Tensor, "batch t"]) -> tuple[Tensor, tuple[Tensor, ...] | None]:
    """Logits and attention of a model that forgets nothing; no attention if it gives none."""
    configured = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if configured is not None:
        model.set_attn_implementation("eager")  # others give no weights
    try:
        found = model(input_ids=tokens, use_cache=False, output_attentions=True)
    finally:
        if configured is not None:
            model.set_attn_implementation(configured)
    attentions = getattr(found, "attentions", None)
    if not attentions or any(layer is None for layer in attentions):
        return _logits(found), None
    return _logits(found), tuple(attentions)
