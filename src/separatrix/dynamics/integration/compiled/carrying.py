"""Pools of plain self-attention, carried by the compiled loop to where each trajectory needs attention."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, final

import numpy
import torch
from torch import Tensor

from ...flows.attention import AttentionFlow
from ..bookkeeping import Bookkeeping
from ..methods.control import DisplacementControl
from ..methods.runge_kutta import RungeKutta
from ..motion import Motion
from ..plan import Plan
from ..pool import Anchor, Pool
from .rules import rules_of

CALL_WORK = 2e8
"""Multiplications of one velocity, over all trajectories of a call: about a second, between which an interrupt is
heard and threads share what is left."""

THREAD_WORK = 2e4
"""The same from which a second thread gains more than its start costs."""


@final
class Carrier:
    """The compiled loop for the trajectories of one integration.

    Every trajectory is followed by itself, so its numbers do not depend, in any bit, on its batch or on the number of
    threads.

    Args:
        motion: whose flow is an ``AttentionFlow`` that ``fits``.
        plan: one that ``fits``.
        limit: last times.
        n_threads: trajectories that are followed at once; by default as many as torch uses.
    """

    def __init__(self, motion: Motion, plan: Plan, limit: Tensor, n_threads: int | None = None) -> None:
        assert isinstance(motion.flow, AttentionFlow)
        assert isinstance(plan.method, RungeKutta)
        assert isinstance(plan.control, DisplacementControl)
        self.loops = loops()
        self.plan, self.limit = plan, limit.numpy()
        self.n_threads = torch.get_num_threads() if n_threads is None else n_threads
        self.exact, self.which = _instances(motion.flow, motion.shape)
        table = plan.method.tableau
        rows = [[*row, *[0.0] * (table.n_stages - len(row))] for row in (*table.stages, *table.errors)]
        self.table = numpy.array(rows)
        self.n_stages = table.n_stages

    def carry(self, pool: Pool, books: Bookkeeping, watch_from: Tensor) -> Carried:
        """Follow all to where they need attention; steps are counted in the books."""
        cargo = Cargo(self.loops, pool, self.limit, books, watch_from, watched=self.plan.returns is not None)
        rules = rules_of(self.loops, self.plan, pool.x.dtype)
        self._run(cargo, rules)
        counts = torch.from_numpy(cargo.counts)
        made = counts[:, self.loops.STEPS] - books.steps[pool.index]
        books.steps[pool.index] += made
        books.rejected[pool.index] += counts[:, self.loops.REJECTED]
        books.evaluations[pool.index] += made * self.plan.method.evaluations
        return Carried(self.loops, cargo.parts())

    def _run(self, cargo: Cargo, rules: Any) -> None:
        """Calls of a few trajectories each, by as many threads as there is work for."""
        count, n, d = cargo.tokens.shape
        work = n * (n + d) * d
        at_once = max(1, min(count, int(CALL_WORK / work)))
        n_threads = min(self.n_threads, count) if work * count > THREAD_WORK else 1
        if n_threads > 1:
            at_once = max(1, min(at_once, count // (4 * n_threads)))
        starts, lock = iter(range(0, count, at_once)), threading.Lock()
        table = self.table.astype(cargo.tokens.dtype)

        def run(_: int = 0) -> None:
            memory = memory_of(self.loops, n, d, self.n_stages, cargo.tokens.dtype)
            while True:
                with lock:
                    first = next(starts, None)
                if first is None:
                    return
                cargo.call(first, min(first + at_once, count), rules, table, self.exact, self.which, memory)

        if n_threads == 1:
            run()
        else:
            with ThreadPoolExecutor(n_threads) as threads:
                list(threads.map(run, range(n_threads)))


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


@final
class Cargo:
    """The trajectories of a pool as the arrays that the loop changes."""

    def __init__(
        self,
        kernels: ModuleType,
        pool: Pool,
        limit: numpy.ndarray,
        books: Bookkeeping,
        watch_from: Tensor,
        *,
        watched: bool,
    ) -> None:
        self.kernels, self.pool = kernels, pool
        self.tokens = numpy.array(pool.x.numpy())
        self.velocities = numpy.empty_like(self.tokens)
        self.sizes = numpy.ones(self.tokens.shape[:2], self.tokens.dtype)
        if pool.sizes is not None:
            self.sizes[:] = pool.sizes.numpy()
        self.labels = numpy.array(pool.labels.numpy())
        self.anchors, self.headings = (numpy.empty_like(self.tokens if watched else self.tokens[:0]) for _ in "ab")
        index = pool.index.numpy()
        self.index = index
        self.numbers = numpy.zeros((len(index), kernels.N_NUMBERS))
        self.counts = numpy.zeros((len(index), kernels.N_COUNTS), numpy.int64)
        self._fill(limit, books, watch_from)

    def _fill(self, limit: numpy.ndarray, books: Bookkeeping, watch_from: Tensor) -> None:
        k, pool, numbers, counts = self.kernels, self.pool, self.numbers, self.counts
        steps = books.steps[pool.index].numpy()
        numbers[:, k.TIME], numbers[:, k.LIMIT] = pool.t.numpy(), limit[self.index]
        # The loop chooses the first size by its own velocity, which no other element of a batch rounds.
        numbers[:, k.SIZE] = numpy.where(steps == 0, 0.0, pool.h.numpy())
        numbers[:, k.ERROR], numbers[:, k.THRESHOLD] = pool.last_error.numpy(), pool.threshold.numpy()
        numbers[:, k.UNIT] = pool.unit.numpy()
        counts[:, k.ROWS] = counts[:, k.PLACES] = self.tokens.shape[1]
        counts[:, k.STEPS], counts[:, k.WATCH] = steps, watch_from[pool.index].numpy()
        if pool.anchor is not None:
            anchor = pool.anchor
            counts[:, k.ANCHORED], counts[:, k.UNTIL] = 1, anchor.until.numpy()
            numbers[:, k.HEIGHT], numbers[:, k.EXTENT] = anchor.height.numpy(), anchor.extent.numpy()
            numbers[:, k.SINCE] = anchor.t.numpy()
            self.anchors[:], self.headings[:] = anchor.x.numpy(), anchor.velocity.numpy()

    def call(
        self,
        first: int,
        last: int,
        rules: Any,
        table: numpy.ndarray,
        exact: numpy.ndarray,
        which: numpy.ndarray,
        memory: tuple[Any, ...],
    ) -> None:
        """Some of the trajectories, by one call of the loop."""
        w, at, *merging = memory
        arrays = (self.tokens, self.velocities, self.anchors, self.headings, self.sizes, self.labels)
        tables = (exact, which[self.index], self.numbers, self.counts)
        self.kernels.carry(first, last, w, at, rules, table, *arrays, *tables, *merging)

    def parts(self) -> Iterator[tuple[int, Pool]]:
        """Pools of trajectories that need the same and have as many places, with the code of what they need."""
        k, counts = self.kernels, self.counts
        kinds = counts[:, [k.CODE, k.PLACES, k.ANCHORED]]
        for kind in numpy.unique(kinds, axis=0):
            chosen = numpy.nonzero((kinds == kind).all(axis=1))[0]
            yield int(kind[0]), self._part(chosen, int(kind[1]), anchored=bool(kind[2]))

    def _part(self, chosen: numpy.ndarray, places: int, *, anchored: bool) -> Pool:
        k, pool, numbers = self.kernels, self.pool, torch.from_numpy(self.numbers[chosen])
        merged = places < self.tokens.shape[1]
        own = pool.keep(torch.from_numpy(chosen))
        tokens, velocities, sizes = (part[chosen, :places] for part in (self.tokens, self.velocities, self.sizes))
        if merged:
            empty = numpy.arange(places) >= self.counts[chosen, k.ROWS, None]
            tokens[empty], velocities[empty], sizes[empty] = 0, 0, 0
            tokens[empty, 0] = 1  # a place holder is a unit vector, of no weight
        found: dict[str, Any] = {
            "x": torch.from_numpy(tokens),
            "velocity": torch.from_numpy(velocities),
            "speed": numbers[:, k.SPEED],
            "t": numbers[:, k.TIME],
            "h": numbers[:, k.SIZE],
            "last_error": numbers[:, k.ERROR],
            "threshold": numbers[:, k.THRESHOLD],
            "labels": torch.from_numpy(self.labels[chosen]),
            "sizes": torch.from_numpy(sizes) if merged or pool.sizes is not None else None,
            "anchor": self._anchor(chosen, places, numbers) if anchored else None,
        }
        return Pool(index=own.index, unit=own.unit, length=own.length, **found)

    def _anchor(self, chosen: numpy.ndarray, places: int, numbers: Tensor) -> Anchor:
        k = self.kernels
        x, velocity = (torch.from_numpy(part[chosen, :places]).double() for part in (self.anchors, self.headings))
        until = torch.from_numpy(self.counts[chosen, k.UNTIL])
        return Anchor(x, velocity, numbers[:, k.SINCE], numbers[:, k.HEIGHT], numbers[:, k.EXTENT], until)


def loops() -> ModuleType:
    """The compiled functions; the first call imports numba."""
    return importlib.import_module(f"{__package__}.attention_loops")


def _instances(flow: AttentionFlow, shape: tuple[int, ...]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """beta M and V of every instance of the weights, and the instance of each element of a batch."""
    axes, d = flow.instances, flow.dim
    both = [
        matrix.double().expand(*axes, 1, d, d).reshape(-1, d, d)
        for matrix in (flow.weights.scaled_coupling, flow.weights.value)
    ]
    exact = torch.stack(both, dim=1).contiguous().numpy()
    which = torch.arange(len(exact)).reshape(axes).expand(shape).reshape(-1)
    return exact, which.contiguous().numpy()


def memory_of(kernels: ModuleType, n: int, d: int, n_stages: int, dtype: Any) -> tuple[Any, ...]:
    """Working memory of one thread: of the trajectory and where things lie in it; of merging."""
    at, length = kernels.places(n, d, n_stages, numpy.dtype(dtype).itemsize)
    vectors = numpy.zeros((kernels.MERGE_VECTORS, max(n, d)))
    return (
        numpy.zeros(length, dtype),
        at,
        numpy.zeros(n * d),
        vectors,
        numpy.zeros((2, d, d)),
        numpy.zeros((2, n), numpy.int64),
    )
