"""Screening played on given weights, without a network: what would be kept, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Num
from torch import Tensor

from separatrix.core.arrays import as_float64, require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.result import Result

from .policies import find_screening
from .screening import AbstractScreening
from .slots import Slots


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Replay(Result):
    """What was kept at each step."""

    relevant: tuple[tuple[int, ...], ...]
    """Times (from 1) of the kept states after each step, ascending."""
    scores: Float[Tensor, " t"]
    """Score of each state when it left the buffer, or at the end if it did not."""


def replay(
    weights: Num[Tensor, " t"] | Sequence[float | int],
    n_buffer: int,
    n_relevant: int,
    normalise: str = "none",
    *,
    screening: str | AbstractScreening | None = None,
) -> Replay:
    r"""Relevancy screening where state i has the same unnormalised weight at every step.

    Attention to i at time t is :math:`w_i/\sum_{j\in M_t}w_j` over the memory :math:`M_t = S_t\cup R_t`: the newest
    ``n_buffer`` states, and those kept.

    Args:
        weights: positive, one per state.
        n_buffer: size of the short buffer.
        n_relevant: how many states are kept beyond it; 0 for a plain window.
        normalise: as in ``AttentionSum``.
        screening: another policy, by name or as an object.

    Source: kerg2022, section 4.5, Algorithm 1.

    Cost: T steps, each of n_buffer + n_relevant numbers.

    Example:
        >>> played = replay([1, 1, 4, 1, 1, 8, 1, 1, 1, 2, 1, 6], n_buffer=2, n_relevant=2)
        >>> played.relevant[-1], played.scores[0].item()
        ((1, 3), 1.5)
    """
    given = as_float64(weights, "weights")
    if given.ndim != 1:
        raise ShapeError(f"weights must be one number per state, (t,); got shape {tuple(given.shape)}.")
    if not bool(((given > 0) & given.isfinite()).all()):
        raise InvalidInput("weights must be positive and finite; at least one is not.")
    n_buffer = require_integer(n_buffer, "n_buffer", at_least=1)
    n_relevant = require_integer(n_relevant, "n_relevant", at_least=0)
    policy = find_screening(screening, normalise)
    if policy.needs_states:
        raise InvalidInput(f"screening {policy.name!r} looks at hidden states, of which weights alone tell nothing.")
    n_buffer = min(n_buffer, max(1, len(given)))  # a larger one holds no more
    n_relevant = min(n_relevant, len(given))
    slots, relevant = Slots(1, n_buffer, n_relevant, policy, given, len(given)), []
    for t in range(len(given)):
        slots.advance(t, t)
        there = torch.where(slots.rows >= 0, given[slots.rows.clamp_min(0)], 0.0)
        slots.observe(t, there / there.sum(), None, None)
        relevant.append(tuple(sorted(row + 1 for row in slots.rows[0, n_buffer:].tolist() if row >= 0)))
    slots.finish(len(given))
    return Replay(tuple(relevant), slots.final.squeeze(1))
