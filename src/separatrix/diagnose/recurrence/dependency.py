"""By which chain of attention a state still reaches the end: the strongest one of the fewest recurrent steps."""

from __future__ import annotations

import dataclasses
from typing import final

from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Dependency(Result):
    """A chain from a hidden state to the last macro-state."""

    degree: int
    """Recurrent steps."""
    hops: int
    """Steps of attention, one more."""
    product: float
    """Of the factors along the chain."""
    chain: tuple[int, ...]
    """Steps (from 0) whose macro-states it passes, the last one at the end."""


def dependency(
    weights: Float[Tensor, "t k"],
    indices: Int[Tensor, "t k"],
    start: int,
    mix: tuple[float, float],
    *,
    threshold: float,
    attention_only: bool,
) -> Dependency | None:
    """The chain of least degree whose product of factors reaches a threshold, and of those the strongest.

    From ``h_j`` to ``s_k`` the factor is ``b alpha[j, k]``, and a more where j = k unless attention alone counts; from
    ``s_k`` to ``h_(k+1)`` it is 1.

    Cost: of the order of degrees times attended states; degrees are tried from 0 on.
    """
    n_steps = len(weights)
    factors: list[dict[int, float]] = []
    for k in range(n_steps):
        row: dict[int, float] = {} if attention_only else {k: mix[0]}
        for j, weight in zip(indices[k].tolist(), weights[k].tolist(), strict=True):
            if j >= 0:
                row[j] = row.get(j, 0.0) + mix[1] * weight
        factors.append(row)
    best = [{k: (row[start], -1) for k, row in enumerate(factors) if row.get(start, 0.0) > 0}]
    for degree in range(n_steps):
        if best[-1].get(n_steps - 1, (0.0, 0))[0] >= threshold:
            return _trace_back(best, n_steps - 1, degree)
        following: dict[int, tuple[float, int]] = {}
        for k, row in enumerate(factors):
            options = [(row[j] * best[-1][j - 1][0], j - 1) for j in row if j - 1 in best[-1] and j - 1 < k]
            if options:
                following[k] = max(options)
        best.append(following)
    return None


def _trace_back(best: list[dict[int, tuple[float, int]]], end: int, degree: int) -> Dependency:
    product, place = best[degree][end][0], end
    chain = [end]
    for layer in range(degree, 0, -1):
        place = best[layer][place][1]
        chain.append(place)
    return Dependency(degree, degree + 1, product, tuple(reversed(chain)))
