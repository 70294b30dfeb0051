"""What a cache kept, held against the attention that the model pays when nothing is forgotten."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.result import Result

IDLE = 0.25
"""Share of an even attention below which a key counts as idle at the end of a run."""
BUSY = 1.0
"""Share of an even attention, over an eighth of the run, from which on it counts as having been looked at."""
FROZEN = 0.5
"""Part of the old keys of a head, frozen, from which on the head counts as frozen."""
MISSED = 0.1
"""Attention of the last quarter on forgotten keys from which on freezing does harm."""
N_BINS = 10


@final
@dataclasses.dataclass(frozen=True, repr=False)
class KeptMeasures(Result):
    """Of one layer, each number for every sequence and head."""

    attention_kept: Float[Tensor, "batch heads"]
    """Mean attention of the unbounded model on keys that were held, over steps at which something was forgotten."""
    oracle_kept: Float[Tensor, "batch heads"]
    """The same of an oracle that holds as many keys, at every step those looked at most: an upper bound."""
    share_of_first: Float[Tensor, "batch heads"]
    """Of the old half of the keys held at the end, the part that are the very first positions."""
    frozen: Float[Tensor, "batch heads"]
    """Of the old half of the keys held at the end, the part that was looked at for a while and is idle now."""
    missed: Float[Tensor, "batch heads"]
    """Attention of the last quarter of the queries on keys that had been forgotten."""
    positions: Float[Tensor, "batch heads bins"]
    """Histogram of the positions held at the end, in ten parts of the sequence."""

    @property
    def retention(self) -> Float[Tensor, "batch heads"]:
        """Attention kept, as a part of what the oracle keeps."""
        return self.attention_kept / self.oracle_kept.clamp_min(torch.finfo(self.oracle_kept.dtype).tiny)

    @property
    def is_frozen(self) -> Bool[Tensor, "batch heads"]:
        """Heads whose old keys are mostly frozen while queries look for others that are gone."""
        return (self.frozen >= FROZEN) & (self.missed >= MISSED)


def measure_kept(
    present: Bool[Tensor, "batch heads t t"], attention: Float[Tensor, "batch qheads t t"]
) -> KeptMeasures:
    """Measures of what a cache held at each step, against the attention of the model without a bound.

    Args:
        present: whether key p (column) was held when query t (row) attended.
        attention: of the unbounded model, with a multiple of the heads; neighbours are averaged.

    A key is *frozen* if it came in the first half, was held ever since, had at least an even share of the attention
    of some successive queries (an eighth of the run) and less than a quarter of it from the last quarter of the
    queries. A head is *frozen* if half of its old keys are, while a tenth of the late attention goes to keys that were
    forgotten: keys kept for what they were, in the place of others that are missed. Idle keys that displace nothing do
    no harm and are not reported.

    Cost: some passes over the (t, t) maps and a sort of their rows.
    """
    if present.ndim != 4 or present.shape[-1] != present.shape[-2] or attention.shape[-2:] != present.shape[-2:]:
        raise ShapeError(
            f"present and attention must be (batch, heads, t, t) of the same t; got {tuple(present.shape)} and "
            f"{tuple(attention.shape)}."
        )
    if attention.shape[1] % present.shape[1] or attention.shape[0] != present.shape[0]:
        raise ShapeError(
            f"attention must have the batch of present, {present.shape[0]}, and a multiple of its {present.shape[1]} "
            f"heads; got {tuple(attention.shape)}."
        )
    t = present.shape[-1]
    if t < 8:
        raise InvalidInput(f"present must cover at least 8 steps to speak of a beginning and an end; got {t}.")
    if bool(attention.isnan().any()):
        raise InvalidInput("attention must not hold NaN; the model without a bound does not say where it looks.")
    weights = attention.to(torch.float64).unflatten(1, (present.shape[1], -1)).mean(2)
    held, count = torch.where(present, weights, 0.0).sum(-1), present.sum(-1)
    forgetting = count < torch.arange(1, t + 1, device=present.device)
    best = _best_sums(weights, count)
    old = present[..., -1, :] & (torch.arange(t, device=present.device) < t // 2)
    n_old = old.sum(-1).clamp_min(1)
    first = torch.arange(t, device=present.device) < old.sum(-1, keepdim=True)
    late = slice(t - t // 4, t)
    return KeptMeasures(
        attention_kept=_mean_where(held, forgetting),
        oracle_kept=_mean_where(best, forgetting),
        share_of_first=(old & first).sum(-1) / n_old,
        frozen=(_frozen_keys(present, weights) & old).sum(-1) / n_old,
        missed=torch.where(present, 0.0, weights)[..., late, :].sum(-1).mean(-1),
        positions=_histogram(present[..., -1, :]),
    )


def _frozen_keys(present: Tensor, weights: Tensor) -> Tensor:
    """Held since they came, looked at for a while, idle at the end."""
    t = present.shape[-1]
    steps = torch.arange(t, device=present.device)
    age = steps[:, None] - steps
    share = torch.where(age >= 0, weights * (steps + 1)[:, None], 0.0)
    before, late = share[..., : t - t // 4, :], share[..., t - t // 4 :, :]
    span = max(1, t // 8)
    sums = torch.nn.functional.pad(before.cumsum(-2), (0, 0, 1, 0))
    busiest = (sums[..., span:, :] - sums[..., :-span, :]).amax(-2) / span
    always = (present | (age < 0)).all(-2)
    # an even share is one only up to rounding
    return always & (late.mean(-2) < IDLE) & (busiest >= BUSY * (1 - 1e-6))


def _best_sums(weights: Tensor, count: Tensor) -> Tensor:
    """Sum of the ``count`` largest weights of every query; of none, 0."""
    sums = torch.nn.functional.pad(weights.sort(-1, descending=True).values.cumsum(-1), (1, 0))
    return sums.gather(-1, count.unsqueeze(-1)).squeeze(-1)


def _mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """Mean over the chosen steps; 1 if nothing was ever forgotten."""
    n = chosen.sum(-1)
    return torch.where(n > 0, torch.where(chosen, values, 0.0).sum(-1) / n.clamp_min(1), 1.0)


def _histogram(held: Tensor) -> Tensor:
    t = held.shape[-1]
    bins = (torch.arange(t, device=held.device) * N_BINS // t).expand(held.shape)
    counts = torch.zeros(*held.shape[:-1], N_BINS, dtype=torch.float64, device=held.device)
    return counts.scatter_add(-1, bins, held.to(counts.dtype)) / held.sum(-1, keepdim=True).clamp_min(1)
