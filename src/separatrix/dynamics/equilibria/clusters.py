"""Which tokens stand together: single linkage of whole batches, and the reduction of a state to its clusters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, require_positive
from separatrix.core.names import suggest_options

from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere
from ..flows.sphere import chordal_distances, normalise


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Clusters:
    """A partition of the tokens of each element, by single linkage of chordal distances.

    ``labels`` count clusters from 0 in the order of their first token. ``merged`` is the largest distance that
    linked two tokens and ``apart`` the smallest distance between clusters (infinite if there is one cluster).
    """

    labels: Int[Tensor, "*batch n"]
    n_clusters: Int[Tensor, "*batch"]
    merged: Float[Tensor, "*batch"]
    apart: Float[Tensor, "*batch"]

    @property
    def gap(self) -> Float[Tensor, "*batch"]:
        """``apart / merged``: below 10 the number of clusters depends on the distance that was asked for."""
        return self.apart / self.merged.clamp_min(torch.finfo(self.merged.dtype).eps)


def find_clusters(x: Float[Tensor, "*batch n d"], distance: float | Float[Tensor, "*batch"] = 1e-3) -> Clusters:
    """Tokens linked by chains of pairs closer than ``distance`` (one number, or one per element).

    Cost: n^2 d per element, plus n^2 for each doubling of the longest chain.
    """
    if not isinstance(distance, Tensor):
        require_positive(distance, "distance")
        distance = x.new_tensor(distance)
    distances = chordal_distances(x)
    near = distances < distance[..., None, None]
    labels = renumber(_components(near))
    together = labels.unsqueeze(-1) == labels.unsqueeze(-2)
    merged = torch.where(near, distances, torch.zeros_like(distances)).amax(dim=(-2, -1))
    apart = torch.where(together, torch.full_like(distances, torch.inf), distances).amin(dim=(-2, -1))
    return Clusters(labels, labels.amax(dim=-1) + 1, merged, apart)


def _components(near: Bool[Tensor, "*batch n n"]) -> Int[Tensor, "*batch n"]:
    """Smallest index of each token's connected component: neighbours pass on their minimum until nothing changes."""
    n = near.shape[-1]
    index = torch.arange(n, device=near.device)
    near = near | torch.eye(n, dtype=torch.bool, device=near.device)
    labels = index.expand(near.shape[:-1])
    while True:
        lowest = torch.where(near, labels.unsqueeze(-2), n).amin(dim=-1)
        lowest = lowest.gather(-1, lowest)
        if torch.equal(lowest, labels):
            return labels
        labels = lowest


def renumber(roots: Int[Tensor, "*batch n"]) -> Int[Tensor, "*batch n"]:
    """Labels 0, 1, ... in the order of the roots, given for each token the smallest index of its cluster."""
    is_root = roots == torch.arange(roots.shape[-1], device=roots.device)
    return (is_root.cumsum(dim=-1) - 1).gather(-1, roots)


def cluster_means(
    x: Float[Tensor, "batch n d"], labels: Int[Tensor, "batch n"], count: int, sizes: Float[Tensor, "batch n"] | None
) -> tuple[Float[Tensor, "batch m d"], Float[Tensor, "batch m"]]:
    """Mean directions and sizes of ``count`` clusters; labels that do not occur give place holders of size zero."""
    member = torch.nn.functional.one_hot(labels, count).to(x.dtype)
    if sizes is not None:
        member = member * sizes.unsqueeze(-1)
    totals = member.sum(dim=-2)
    sums = member.mT @ x
    sums[..., 0] += (totals == 0).to(x.dtype)
    return normalise(sums), totals


def by_count(count: Int[Tensor, " batch"]) -> Iterator[tuple[int, Int[Tensor, " chosen"]]]:
    """Indices of the elements with each number of clusters, so that equal ones are computed in one batch."""
    for m in torch.unique(count).tolist():
        yield int(m), (count == m).nonzero().squeeze(-1)


def cluster_flow(flow: AbstractFlow, sizes: Float[Tensor, "*batch m"]) -> AbstractSphereFlow:
    """The exact restriction of a flow to states of m clusters with the given sizes.

    .. math:: \\dot w_a = P_a V \\mu_a, \\qquad \\mu_a = \\sum_b \\pi_{ab} w_b, \\qquad
              \\pi_{ab} = \\mathrm{softmax}_b(\\beta w_a^T M w_b + \\ln n_b)

    Only the fractions matter to the flow, so sizes may be real (the limit of many tokens). A velocity costs
    m^2 d + m d^2, whatever the number of tokens.

    Raises:
        InvalidInput: the flow has a mask or a position bias, under which tokens at one place move differently.
    """
    flow = require_sphere(flow, "cluster_flow")
    if not flow.reducible:
        raise InvalidInput("cluster_flow needs a flow without mask and bias: these tell tokens at one place apart.")
    return flow.with_sizes(sizes)
