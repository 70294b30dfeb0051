"""Tokens that have come together and will stay together are carried on as one row with a size."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from ..equilibria.clusters import cluster_means, find_clusters, renumber
from ..equilibria.stability import transversal_blocks
from ..flows.base import AbstractSphereFlow
from .pool import Pool

ROW_COUNTS = (2, 4, 8, 16, 32, 64, 128, 256)
"""Rows of a merged pool: the smallest of these that holds the clusters of an element, so that it depends on nothing
but the element itself."""


@final
@dataclasses.dataclass(frozen=True)
class Merging:
    """Tokens closer than ``distance`` become one row at their mean, if their cluster contracts.

    A cluster contracts if the symmetric part of its transversal block is negative definite: then every difference
    inside it decays from now on. Tokens move by at most ``distance`` when they are merged; where a trajectory is to be
    shown, and not its end alone, that must lie below its tolerance.
    """

    distance: float

    def merge(self, flow: AbstractSphereFlow, pool: Pool) -> list[Pool]:
        """Split off the trajectories whose tokens can be merged to half as many rows or fewer.

        Args:
            flow: the flow of the elements of this pool, one by one.
            pool: trajectories in any precision.
        """
        found = find_clusters(_live_rows(pool), self.distance)
        target = torch.tensor([_row_count(int(m)) for m in found.n_clusters.tolist()], device=pool.x.device)
        ready = (target <= pool.x.shape[1] // 2) & (pool.threshold > 0)
        if not bool(ready.any()):
            return [pool]
        chosen = ready.nonzero().squeeze(-1)
        labels = _contracting(flow.select((len(pool.x),), chosen), pool.keep(chosen), found.labels[chosen])
        rows = torch.tensor([_row_count(int(m)) for m in (labels.amax(dim=-1) + 1).tolist()], device=pool.x.device)
        smaller = rows <= pool.x.shape[1] // 2
        stay = torch.ones_like(ready)
        stay[chosen[smaller]] = False
        pools = [pool.keep(stay)] if bool(stay.any()) else []
        for m in torch.unique(rows[smaller]).tolist():
            of_size = (rows == m) & smaller
            pools.append(_merged(pool.keep(chosen[of_size]), labels[of_size], int(m)))
        return pools


def _row_count(m: int) -> int:
    return next((rows for rows in ROW_COUNTS if rows >= m), m)


def _live_rows(pool: Pool) -> Tensor:
    """The rows, with place holders (of size zero, so that they weigh nothing) moved onto the first."""
    if pool.sizes is None:
        return pool.x
    return torch.where((pool.sizes > 0).unsqueeze(-1), pool.x, pool.x[:, :1])


def _contracting(flow: AbstractSphereFlow, pool: Pool, labels: Tensor) -> Tensor:
    """Labels in which only contracting clusters stay together."""
    count = int(labels.amax()) + 1
    w, sizes = cluster_means(pool.x.double(), labels, count, None if pool.sizes is None else pool.sizes.double())
    blocks = transversal_blocks(flow.to(torch.float64), w, sizes)
    contracts = torch.linalg.eigvalsh((blocks + blocks.mT) / 2).amax(dim=-1) < 0
    index = torch.arange(labels.shape[-1], device=labels.device)
    first = torch.where(labels.unsqueeze(-1) == labels.unsqueeze(-2), index, labels.shape[-1]).amin(dim=-1)
    return renumber(torch.where(contracts.gather(-1, labels), first, index.expand_as(labels)))


def _merged(pool: Pool, labels: Tensor, rows: int) -> Pool:
    w, sizes = cluster_means(pool.x, labels, rows, pool.sizes)
    return dataclasses.replace(
        pool,
        x=w,
        velocity=torch.zeros_like(w),  # taken anew at the start of the next round
        labels=labels.gather(-1, pool.labels),
        sizes=sizes,
        anchor=None,  # it had other rows
    )
