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
from separatrix.core.networks.modes import evaluation_mode
from separatrix.core.result import Result

from .kept import presence


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CacheRun(Result):
    """One pass over given tokens."""

    logits: Float[Tensor, "batch t symbols"]
    present: tuple[Bool[Tensor, "batch heads t t"], ...] | None
    """For each layer, which key was held after each query; ``None`` if the cache does not tell."""
    seconds: float
    """Processor time of the calls of the model."""
    prefill: int = 1
    """Tokens of the first call."""

    @property
    def largest(self) -> int | None:
        """Most keys that a head held after any call; tokens of the first one saw all before them."""
        if self.present is None:
            return None
        return max(int(layer[..., self.prefill - 1 :, :].sum(-1).max()) for layer in self.present)


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
    sizes = [prefill, *[1] * (tokens.shape[1] - prefill)]
    outputs, kept, seconds, end = [], [], 0.0, 0
    with _evaluating(model), contextlib.nullcontext() if attached is None else attached(model):
        for part in tokens.split(sizes, 1):
            began = time.process_time()
            found = model(input_ids=part, past_key_values=cache, use_cache=True)
            seconds += time.process_time() - began
            outputs.append(_logits(found, part))
            end += part.shape[1]
            kept.append((end, getattr(cache, "kept_positions", None)))
    return CacheRun(torch.cat(outputs, 1), presence(kept, len(tokens), prefill), seconds, prefill)


def _evaluating(model: Any) -> contextlib.AbstractContextManager[None]:
    return evaluation_mode(model) if isinstance(model, torch.nn.Module) else contextlib.nullcontext()


def _logits(found: Any, tokens: Tensor) -> Tensor:
    """The logits of an output; those of a tuple or of too few tokens are none."""
    logits = getattr(found, "logits", None)
    if not isinstance(logits, Tensor):
        raise InvalidInput(f"model must return an object with logits; got {type(found).__name__}.")
    if logits.ndim != 3 or logits.shape[:2] != tokens.shape:
        raise InvalidInput(
            f"model must return logits ({', '.join(map(str, tokens.shape))}, symbols) for the tokens it is given; got "
            f"{tuple(logits.shape)}."
        )
    if bool(logits.isnan().any()):
        raise InvalidInput("model returned logits that are not numbers (NaN); there is nothing to compare.")
    least, most = int(tokens.min()), int(tokens.max())
    if least < 0 or most >= logits.shape[-1]:
        raise InvalidInput(
            f"tokens must be below {logits.shape[-1]}, the symbols of the model, and not negative; got {least} to "
            f"{most}."
        )
    return logits


@torch.no_grad()
def run_unbounded(model: Any, tokens: Int[Tensor, "batch t"]) -> tuple[Tensor, tuple[Tensor, ...] | None]:
    """Logits and attention of a model that forgets nothing; no attention if it gives none."""
    configured = getattr(getattr(model, "config", None), "_attn_implementation", None)
    if configured is not None:
        model.set_attn_implementation("eager")  # others give no weights
    try:
        with _evaluating(model):
            found = model(input_ids=tokens, use_cache=False, output_attentions=True)
    finally:
        if configured is not None:
            model.set_attn_implementation(configured)
    attentions = getattr(found, "attentions", None)
    if not attentions or any(layer is None for layer in attentions):
        return _logits(found, tokens), None
    return _logits(found, tokens), tuple(attentions)
