"""Who stays: places of a bounded cache by position and score."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def ranks(
    positions: Int[Tensor, "batch heads k"],
    scores: Float[Tensor, "batch heads k"],
    now: Int[Tensor, " batch"],
    n_buffer: int,
    sinks: int,
) -> Float[Tensor, "batch heads k"]:
    """Scores, infinite for the newest ``n_buffer`` keys up to ``now`` and the first ``sinks``, minus it where empty."""
    kept = (positions > (now - n_buffer)[:, None, None]) | (positions < sinks)
    return torch.where(positions < 0, -torch.inf, torch.where(kept, torch.inf, scores))


def weakest(
    positions: Int[Tensor, "batch heads k"], rank: Float[Tensor, "batch heads k"]
) -> tuple[Int[Tensor, "batch heads"], Bool[Tensor, "batch heads"]]:
    """The place that goes first, of equal ones the most recent; and whether it is empty."""
    least = rank.amin(-1, keepdim=True)
    place = torch.where(rank == least, positions, -2).argmax(-1)
    return place, positions.gather(-1, place.unsqueeze(-1)).squeeze(-1) < 0


def strongest(
    positions: Int[Tensor, "batch heads k"], rank: Float[Tensor, "batch heads k"], count: int
) -> Int[Tensor, "batch heads kept"]:
    """Places of the best ``count`` keys by falling rank, of equal ones the earlier, listed by rising position.

    If no head has so many keys, as many as the fullest one has.
    """
    count = min(count, int((positions >= 0).sum(-1).max())) if positions.numel() else 0
    last = torch.iinfo(positions.dtype).max
    by_time = torch.where(positions < 0, last, positions).argsort(dim=-1, stable=True)
    by_rank = rank.gather(-1, by_time).argsort(dim=-1, descending=True, stable=True)
    best = by_rank[..., :count].sort(-1).values
    return by_time.gather(-1, best)
