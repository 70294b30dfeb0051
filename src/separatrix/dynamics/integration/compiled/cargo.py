"""Trajectories as the arrays that the compiled loop changes: from pools and back."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, final

import numpy
import torch
from torch import Tensor

from ..bookkeeping import Bookkeeping
from ..pool import Anchor, Pool


@final
class Cargo:
    """Rows of trajectories with what is known of each; see the loops for the columns of ``numbers`` and ``counts``.

    Args:
        kernels: the compiled loops.
        index: which elements of the batch these are.
        tokens: rows (trajectories, rows, d), which will be changed.
        sizes: how many tokens each row stands for; None if each is one.
        watched: whether returns are looked for.
        moving: whether velocities at the end are asked for.
    """

    def __init__(
        self,
        kernels: ModuleType,
        index: numpy.ndarray,
        tokens: numpy.ndarray,
        sizes: Any,
        *,
        watched: bool,
        moving: bool = True,
    ) -> None:
        count, n = tokens.shape[:2]
        self.kernels, self.index, self.tokens = kernels, index, tokens
        self.velocities = self.anchors = self.headings = tokens[:0]
        if moving:
            self.velocities = numpy.empty_like(tokens)
        if watched:
            self.anchors, self.headings = numpy.empty_like(tokens), numpy.empty_like(tokens)
        self.sizes, self.labels = numpy.empty((count, n), tokens.dtype), numpy.empty((count, n), numpy.int64)
        self.sizes[:] = 1 if sizes is None else sizes
        self.labels[:] = numpy.arange(n)
        self.numbers = numpy.zeros((count, kernels.N_NUMBERS))
        self.counts = numpy.zeros((count, kernels.N_COUNTS), numpy.int64)
        self.counts[:, kernels.ROWS] = n

    @classmethod
    def of_starts(cls, kernels: ModuleType, x: Tensor, dtype: Any, sizes: Tensor | None) -> Cargo:
        """Trajectories at time zero, in the given precision."""
        tokens, own = numpy.array(x.numpy(), dtype, order="C"), None if sizes is None else sizes.numpy()
        return cls(kernels, numpy.arange(len(x)), tokens, own, watched=False, moving=False)

    @classmethod
    def of_pool(
        cls,
        kernels: ModuleType,
        pool: Pool,
        limit: Tensor,
        books: Bookkeeping,
        watch_from: Tensor,
        *,
        watched: bool,
    ) -> Cargo:
        """The trajectories of a pool."""
        sizes = None if pool.sizes is None else pool.sizes.numpy()
        self = cls(kernels, pool.index.numpy(), numpy.array(pool.x.numpy()), sizes, watched=watched)
        self.labels = numpy.array(pool.labels.numpy())
        k, numbers, counts, steps = kernels, self.numbers, self.counts, books.steps[pool.index].numpy()
        numbers[:, k.TIME], numbers[:, k.LIMIT] = pool.t.numpy(), limit[pool.index].numpy()
        # The loop chooses the first size by its own velocity, which no other element of a batch rounds.
        numbers[:, k.SIZE] = numpy.where(steps == 0, 0.0, pool.h.numpy())
        numbers[:, k.ERROR], numbers[:, k.THRESHOLD] = pool.last_error.numpy(), pool.threshold.numpy()
        numbers[:, k.UNIT] = pool.unit.numpy()
        counts[:, k.STEPS], counts[:, k.WATCH] = steps, watch_from[pool.index].numpy()
        if pool.anchor is not None:
            self._set_anchor(pool.anchor)
        return self

    def _set_anchor(self, anchor: Anchor) -> None:
        k, numbers, counts = self.kernels, self.numbers, self.counts
        counts[:, k.ANCHORED], counts[:, k.UNTIL] = 1, anchor.until.numpy()
        numbers[:, k.HEIGHT], numbers[:, k.EXTENT] = anchor.height.numpy(), anchor.extent.numpy()
        numbers[:, k.SINCE] = anchor.t.numpy()
        self.anchors[:], self.headings[:] = anchor.x.numpy(), anchor.velocity.numpy()

    def arrays(self) -> tuple[numpy.ndarray, ...]:
        """In the order in which the loop takes them."""
        return self.tokens, self.velocities, self.anchors, self.headings, self.sizes, self.labels

    def steps(self) -> tuple[Tensor, Tensor]:
        """Attempted steps of each trajectory until now, and how many of this journey were rejected."""
        counts = torch.from_numpy(self.counts)
        return counts[:, self.kernels.STEPS], counts[:, self.kernels.REJECTED]

    def part(self, chosen: numpy.ndarray, dtype: Any) -> Cargo:
        """Some of the trajectories, in another precision; without anchors and velocities."""
        tokens, sizes = self.tokens[chosen].astype(dtype), self.sizes[chosen]
        own = Cargo(self.kernels, self.index[chosen], tokens, sizes, watched=False, moving=False)
        own.labels, own.numbers, own.counts = self.labels[chosen], self.numbers[chosen], self.counts[chosen]
        return own

    def parts(self, pool: Pool) -> Iterator[tuple[int, Pool]]:
        """Pools of trajectories that need the same and have as many rows, with the code of what they need."""
        k = self.kernels
        kinds = self.counts[:, [k.CODE, k.ROWS, k.ANCHORED]]
        for kind in numpy.unique(kinds, axis=0):
            chosen = numpy.nonzero((kinds == kind).all(axis=1))[0]
            yield int(kind[0]), self._pool(pool, chosen, int(kind[1]), anchored=bool(kind[2]))

    def _pool(self, pool: Pool, chosen: numpy.ndarray, rows: int, *, anchored: bool) -> Pool:
        k, numbers = self.kernels, torch.from_numpy(self.numbers[chosen])
        own = pool.keep(torch.from_numpy(chosen))
        merged = rows < self.tokens.shape[1]
        x, velocity, sizes = (torch.from_numpy(part[chosen, :rows]) for part in self._rows())
        found: dict[str, Any] = {
            "x": x,
            "velocity": velocity,
            "speed": numbers[:, k.SPEED],
            "t": numbers[:, k.TIME],
            "h": numbers[:, k.SIZE],
            "last_error": numbers[:, k.ERROR],
            "threshold": numbers[:, k.THRESHOLD],
            "labels": torch.from_numpy(self.labels[chosen]),
            "sizes": sizes if merged or pool.sizes is not None else None,
            "anchor": self._anchor(chosen, rows, numbers) if anchored else None,
        }
        return Pool(index=own.index, unit=own.unit, length=own.length, **found)

    def _rows(self) -> tuple[numpy.ndarray, ...]:
        return self.tokens, self.velocities, self.sizes

    def _anchor(self, chosen: numpy.ndarray, rows: int, numbers: Tensor) -> Anchor:
        k = self.kernels
        x, velocity = (torch.from_numpy(part[chosen, :rows]).double() for part in (self.anchors, self.headings))
        until = torch.from_numpy(self.counts[chosen, k.UNTIL])
        return Anchor(x, velocity, numbers[:, k.SINCE], numbers[:, k.HEIGHT], numbers[:, k.EXTENT], until)


@final
class Carried:
    """Trajectories by what they need: ``over`` or perhaps at rest; to be sorted between two rounds, by precision and
    stiffness; or a step that crosses the section of their anchor, which shows whether they return."""

    def __init__(self, kernels: ModuleType, parts: Iterator[tuple[int, Pool]]) -> None:
        self.over: list[Pool] = []
        self.unsorted: list[Pool] = []
        self.crossing: list[Pool] = []
        for code, part in parts:
            if code == kernels.CROSSING:
                self.crossing.append(part)
            else:
                (self.unsorted if code in (kernels.SLOW, kernels.SMALL) else self.over).append(part)
