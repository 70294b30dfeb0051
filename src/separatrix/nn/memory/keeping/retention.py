"""How much of what matters a bounded memory kept, and how much it owes to the start."""

from __future__ import annotations

import dataclasses
from typing import final

from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.result import Result


def retention(kept: Int[Tensor, "batch rho"], relevant: Bool[Tensor, "batch t"]) -> Float[Tensor, " batch"]:
    """Share of the steps that matter which are among those kept.

    Args:
        kept: steps from 0, -1 for an empty place, as ``relevant_index`` of a network.
        relevant: which steps matter; at least one in each sequence.

    Example:
        >>> import torch
        >>> retention(torch.tensor([[0, 2, -1]]), torch.tensor([[True, True, False, False]]))
        tensor([0.5000])
    """
    if kept.ndim != 2 or relevant.ndim != 2 or len(kept) != len(relevant):
        raise ShapeError(
            f"kept must be (batch, rho) and relevant (batch, t); got {tuple(kept.shape)} and {tuple(relevant.shape)}."
        )
    wanted = relevant.sum(1)
    if not bool((wanted > 0).all()):
        raise InvalidInput("relevant must mark at least one step of each sequence; one has none.")
    there = (kept >= 0) & (kept < relevant.shape[1])
    hits = relevant.gather(1, kept.clamp(0, max(0, relevant.shape[1] - 1))) & there
    return hits.sum(1) / wanted


@final
@dataclasses.dataclass(frozen=True, repr=False)
class StartupBias(Result):
    """How much early states profit from small memories."""

    ratio: Float[Tensor, " batch"]
    """Mean score of the first ``n_buffer`` states over that of the rest."""
    share_of_first: Float[Tensor, " batch"]
    """Share of the kept states that are the very first ones."""


def startup_bias(scores: Float[Tensor, "batch t"], kept: Int[Tensor, "batch rho"], n_buffer: int) -> StartupBias:
    """Whether states are kept because they came first.

    While the memory fills, attention is shared by few, so early states have high scores whatever they hold: under even
    attention the first has 1 + 1/2 + ... + 1/n_buffer, later ones n_buffer/(n_buffer + n_relevant).

    Args:
        scores: with which states left the buffer, ``last.scores`` of a network.
        kept: ``last.relevant_index``.
        n_buffer: size of the buffer.
    """
    n_buffer = require_integer(n_buffer, "n_buffer", at_least=1)
    if scores.ndim != 2 or kept.ndim != 2 or scores.shape[1] <= n_buffer:
        raise ShapeError(
            f"scores must be (batch, t) with more than n_buffer = {n_buffer} steps and kept (batch, rho); got "
            f"{tuple(scores.shape)} and {tuple(kept.shape)}."
        )
    ratio = scores[:, :n_buffer].mean(1) / scores[:, n_buffer:].mean(1)
    early = (kept >= 0) & (kept < kept.shape[1])
    return StartupBias(ratio, early.sum(1) / (kept >= 0).sum(1).clamp_min(1))
