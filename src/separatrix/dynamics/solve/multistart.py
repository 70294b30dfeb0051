"""How many equilibria does a map have? Start from many points and see how many different ends there are."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core.arrays import require_positive
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result

from .find import solve_quietly
from .maps.counted import FixedPointMap
from .methods.base import AbstractEquilibriumSolver


@final
@dataclasses.dataclass(frozen=True, repr=False)
class EquilibriumCount(Result):
    """The different equilibria that a set of starts leads to, in the order of their first start."""

    n_equilibria: int
    points: Float[Tensor, "n d"]
    fractions: Float[Tensor, " n"]
    """Share of all starts that end at each: an estimate of the basin's weight under the law of the starts."""
    labels: Int[Tensor, " starts"]
    """Which equilibrium each start ends at; -1 where the solve failed."""
    n_failed: int


def count_equilibria(
    fixed_point_map: FixedPointMap,
    method: AbstractEquilibriumSolver[Any] | str,
    starts: Float[Tensor, "starts d"],
    *,
    radius: float = 1e-3,
) -> EquilibriumCount:
    """Solve from every start and cluster the ends.

    A lower bound on the number of equilibria: one whose basin no start lies in is not seen. ``Picard`` finds only
    those that attract the iteration; ``NewtonKrylov`` finds repelling ones too.

    Args:
        fixed_point_map: the map for ONE input, acting on ``(starts, d)``.
        method: a solver or its name; its tolerance should be well below ``radius``.
        starts: initial states, usually random.
        radius: two ends are the same if their distance is at most this times the larger of their norms (or one, if
            both are shorter).

    Cost: one batched solve, and O(n starts d) for the clustering with n equilibria.

    Example:
        >>> from separatrix.dynamics import Picard
        >>> starts = torch.linspace(-1, 1, 8)[:, None]
        >>> count_equilibria(lambda z: torch.tanh(2 * z), Picard(tol=1e-6), starts).n_equilibria
        2
    """
    require_positive(radius, "radius")
    solution = solve_quietly(fixed_point_map, method, starts)
    converged = solution.outcome == Outcome.CONVERGED
    labels, firsts = _clusters(solution.best, converged, radius)
    members = labels.unsqueeze(0) == torch.arange(len(firsts), device=labels.device).unsqueeze(1)
    fractions = members.to(starts.dtype).sum(1) / max(len(labels), 1)
    return EquilibriumCount(len(firsts), solution.best[firsts], fractions, labels, int((~converged).sum()))


def _clusters(points: Tensor, valid: Tensor, radius: float) -> tuple[Tensor, list[int]]:
    """Labels of the points and the index of the first of each cluster; a loop over clusters, not over points."""
    labels = torch.full(points.shape[:1], -1, dtype=torch.int64, device=points.device)
    norms = torch.linalg.vector_norm(points, dim=-1)
    free = valid.clone()
    firsts: list[int] = []
    while bool(free.any()):
        first = int(free.nonzero()[0])
        scale = torch.maximum(norms, norms[first]).clamp_min(1.0)
        near = free & (torch.linalg.vector_norm(points - points[first], dim=-1) <= radius * scale)
        labels = torch.where(near, len(firsts), labels)
        free = free & ~near
        firsts.append(first)
    return labels, firsts
