"""The end of a trajectory: from a state that moves slowly to a certified stable equilibrium beside it."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..equilibria.clusters import by_count, cluster_means, find_clusters
from ..equilibria.polishing import polish
from ..equilibria.stability import cluster_stability, token_stability
from ..flows.base import AbstractSphereFlow
from ..flows.sphere import angles, normalise, tangent_part

TOKEN_DISPLACEMENT = 0.15
"""Radians between a token and the equilibrium it is said to reach, which must be stable with contracting clusters."""

LARGEST_SYSTEM = 2000
"""Unknowns of a Newton system; states with more separate tokens are followed by integration alone."""


@final
@dataclasses.dataclass(frozen=True)
class Finish:
    """Per element: the equilibrium beside the state (NaN if none), and whether it is stable or unstable for sure."""

    point: Float[Tensor, "batch n d"]
    found: Bool[Tensor, " batch"]
    stable: Bool[Tensor, " batch"]
    unstable: Bool[Tensor, " batch"]

    def __getitem__(self, chosen: slice) -> Finish:
        return Finish(self.point[chosen], self.found[chosen], self.stable[chosen], self.unstable[chosen])


def finish(
    flow: AbstractSphereFlow,
    x: Float[Tensor, "batch n d"],
    reach: Float[Tensor, " batch"],
    sizes: Float[Tensor, "batch n"] | None = None,
) -> Finish:
    """Equilibria beside states; rows within ``reach`` are taken to be on their way together.

    The number of clusters differs between elements, so elements with equal numbers are computed in one batch.
    """
    point, verdicts = torch.full_like(x, torch.nan), x.new_zeros(3, len(x), dtype=torch.bool)
    if not flow.reducible:
        labels = torch.arange(x.shape[1], device=x.device).expand(x.shape[:2])
        count = torch.full((len(x),), x.shape[1], device=x.device)
    else:
        clusters = find_clusters(x, reach)
        labels, count = clusters.labels, clusters.count
    for m, chosen in by_count(count):
        if m * (x.shape[-1] - 1) > LARGEST_SYSTEM:
            continue
        own = flow.select((len(x),), chosen)
        point[chosen], verdicts[:, chosen] = _finish_equal(
            own, x[chosen], labels[chosen], m, None if sizes is None else sizes[chosen]
        )
    return Finish(point, *verdicts)


def _finish_equal(
    flow: AbstractSphereFlow, x: Tensor, labels: Tensor, m: int, rows: Tensor | None
) -> tuple[Tensor, Tensor]:
    w, sizes = cluster_means(x, labels, m, rows)
    if flow.reducible:
        polished = polish(flow, w, sizes, max_displacement=TOKEN_DISPLACEMENT)
    else:
        polished = polish(flow, x, max_displacement=TOKEN_DISPLACEMENT)
    safe = torch.where(polished.found[:, None, None], polished.point, w)
    tokens = safe.gather(1, labels.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
    found = polished.found & (angles(tokens, x).amax(dim=-1) < TOKEN_DISPLACEMENT)
    stability = cluster_stability(flow, safe, sizes) if flow.reducible else token_stability(flow, safe)
    stable = found & stability.stable
    unstable = found & ~stability.stable & ~stability.marginal
    return torch.where(found[:, None, None], tokens, torch.nan), torch.stack([found, stable, unstable])


def nudge(x: Float[Tensor, "batch n d"], size: float = 1e-6) -> Float[Tensor, "batch n d"]:
    """A fixed small tangent perturbation, the same for an element whatever else is in its batch.

    Its directions are cosines of incommensurable multiples of the indices, so that it has a component along every
    unstable direction without drawing random numbers.
    """
    n, d = x.shape[-2:]
    i = torch.arange(n, dtype=x.dtype, device=x.device).unsqueeze(-1)
    j = torch.arange(d, dtype=x.dtype, device=x.device)
    pattern = torch.cos(1.0 + 12.9898 * i + 78.233 * j + 3.7 * i * j)
    return normalise(x + size * tangent_part(x, pattern.expand_as(x)))
