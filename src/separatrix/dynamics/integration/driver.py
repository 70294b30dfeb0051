"""The one integrator: many trajectories, each with its own step size and its own end.

Trajectories are advanced in pools of equal row count, small enough for the cache. After every few steps the pools are
sorted anew: finished trajectories leave, merged ones go to smaller pools, others fill the free places. What a step is,
when it is good enough, what ends a trajectory and what may end it early are objects.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..flows.attention import AttentionFlow
from ..flows.base import AbstractFlow, AbstractSphereFlow
from .bookkeeping import Bookkeeping
from .compiled.cargo import Cargo, Carried
from .compiled.carrying import Carrier
from .ends import Ends
from .finishing import Arrivals
from .methods.base import AbstractMethod
from .motion import SMALLEST, Motion, with_sizes
from .plan import Plan
from .pool import Pool
from .stepping import LARGEST_IMPLICIT, ROUND, SINGLE_PRECISION_FLOOR, advance, is_stiff, seems_small

BATCH, ORBITS = 32, 512
"""Attempts to finish, and to close an orbit, that are made together."""


@final
class Run:
    """One integration: pools in waiting, trajectories that may have arrived or returned, and the books."""

    def __init__(
        self,
        flow: AbstractFlow,
        batch_shape: tuple[int, ...],
        x0: Float[Tensor, "batch n d"],
        plan: Plan,
        limit: Float[Tensor, " batch"],
        frames: Float[Tensor, " frames"] | None,
        *,
        compiled: bool = False,
    ) -> None:
        self.plan, self.limit, self.motion = plan, limit, Motion(flow, batch_shape, x0)
        self.carrier = None
        if compiled:
            assert isinstance(self.motion.flow, AttentionFlow)
            self.carrier = Carrier(self.motion.flow, self.motion.shape, plan)
        self.books = Bookkeeping(x0, frames)
        self.ends = Ends(self.motion, plan, self.books, limit)
        self.waiting: dict[tuple[int, bool, torch.dtype, bool, bool], list[Pool]] = defaultdict(list)
        self.resting: list[Pool] = []
        self.returned: list[tuple[Pool, Tensor]] = []
        self.watch_from = torch.full_like(self.books.steps, plan.returns.patience if plan.returns is not None else 0)
        for index in torch.arange(len(x0), device=x0.device).split(self.motion.pool_size(*x0.shape[1:])):
            self._begin(self.ends.begun(x0[index], index, plan.stop.first_threshold))

    def run(self) -> None:
        """Advance pools, largest rows first, until nobody waits; attempts to finish are made in batches."""
        while self.waiting or self.resting or self.returned:
            if self._full(self.resting):
                self._finish_resting()
            elif self._full([pool for pool, _ in self.returned], ORBITS):
                self._close_returned()
            elif self.waiting:
                key = max(self.waiting, key=lambda kind: (kind[0], str(kind[1:])))
                pool = self._take(key)
                parts = self._advance(pool) if self.carrier is None or pool.stiff else self._carry(self.carrier, pool)
                for part in parts:
                    self._wait(part)

    def _full(self, parts: list[Pool], batch: int = BATCH) -> bool:
        return bool(parts) and (not self.waiting or sum(len(part.index) for part in parts) >= batch)

    # Flows and pools.

    def _begin(self, pool: Pool) -> None:
        """Trajectories that may have arrived before the first step are looked at first."""
        stop = self.plan.stop
        early = stop.resting(pool) & (self.plan.finisher is not None)
        if bool(early.any()):
            self.resting.append(pool.keep(early))
        going = pool.keep(~early & (pool.t < self.limit[pool.index]))
        exact, rough = _divided(going, self.motion.fits_single(going))
        for part in (exact, rough.to(self.plan.transient)):
            if self.plan.returns is not None and self.plan.returns.patience == 0:
                part = self.plan.returns.anchored(part, self.books.steps[part.index])
            self._wait(part)
        self.ends.close(pool.keep(~early & (pool.t >= self.limit[pool.index])), stop.at_limit)

    def _wait(self, pool: Pool) -> None:
        if len(pool.index):
            self.waiting[pool.key].append(pool)

    def _take(self, key: tuple[int, bool, torch.dtype, bool, bool]) -> Pool:
        """As many waiting trajectories of one kind as fit in a pool; all where each is followed by itself."""
        pool = Pool.join(self.waiting.pop(key))
        if self.carrier is not None and not pool.stiff:
            return pool
        limit = self.motion.pool_size(*pool.x.shape[1:])
        if len(pool.index) > limit:
            self.waiting[key] = [pool.keep(slice(limit, None))]
            pool = pool.keep(slice(0, limit))
        return pool

    # Rounds of steps.

    def _carry(self, carrier: Carrier, pool: Pool) -> list[Pool]:
        """All steps of trajectories until they need attention; returns what goes on."""
        watched = self.plan.returns is not None
        cargo = Cargo.of_pool(carrier.loops, pool, self.limit, self.books, self.watch_from, watched=watched)
        carrier.carry(cargo)
        self.books.count_carried(pool.index, *cargo.steps(), self.plan.method.evaluations)
        carried = Carried(carrier.loops, cargo.parts(pool))
        for part in carried.over:
            arrived = self.ends.left(part)
            if len(arrived.index):
                self.resting.append(arrived)
        sorted_ = [part for pool in carried.unsorted for part in self._sorted(pool)]
        return [*sorted_, *(part for pool in carried.crossing for part in self._advance(pool))]

    def _advance(self, pool: Pool) -> list[Pool]:
        """Some steps of one pool; returns what goes on."""
        flow = self.motion.of(pool)
        if self.motion.rate is not None:
            pool.velocity = _masked(flow.velocity(pool.x, pool.t), pool)  # rows or precision may have changed
        self._measure(flow, pool)
        method = self.plan.stiff if pool.stiff and self.plan.stiff is not None else self.plan.method
        for _ in range(ROUND):
            gone = self._step(flow, method, pool)
            if bool(gone.any()):
                stay = (~gone).nonzero().squeeze(-1)
                flow, pool = flow.select((len(gone),), stay), pool.keep(stay)
                if not len(stay):
                    return []
        return [part for merged in self._merged(pool) for part in self._sorted(merged)]

    def _measure(self, flow: AbstractFlow, pool: Pool) -> None:
        """Where the flow has no rate of its own: a speed is small if it leads nowhere at the rate it decays.

        With f the velocity and f' its derivative, |f|^2 / |f' f| is the distance to an equilibrium that is approached
        along f. It is compared with the way that the trajectory has come.
        """
        if self.motion.rate is not None or not self.plan.stop.sought:
            return
        change = flow.jvp(pool.x, pool.velocity).flatten(1)
        decay = torch.linalg.vector_norm(change, dim=-1) / torch.linalg.vector_norm(pool.velocity.flatten(1), dim=-1)
        pool.unit = (self.motion.extent(pool) * decay).nan_to_num(nan=0.0).clamp_min(SMALLEST)

    def _step(self, flow: AbstractFlow, method: AbstractMethod, pool: Pool) -> Tensor:
        """One step; trajectories that are over, or may be, are taken care of, and marked in what is returned."""
        index, t_before, x_before = pool.index, pool.t, pool.x
        limit = self.limit[index]
        goal = torch.minimum(limit, self.books.next_time(index)) if method.lands else limit
        accepted, attempt = advance(flow, method, self.plan.control, pool, goal)
        self.books.count_step(index, accepted, method.evaluations)
        self.books.note(pool, accepted)
        self.books.record(flow, method, pool, t_before, x_before, attempt)
        self.plan.stop.rearm(pool)
        out = (pool.t >= limit) | (self.books.steps[index] >= self.plan.max_steps)
        leaving = self.plan.stop.resting(pool) | out | ~torch.isfinite(pool.speed) | self.ends.stuck(pool)
        leaving = leaving | self.ends.escaped(pool)
        returned = None
        if pool.anchor is not None and self.plan.returns is not None:
            back, period = self.plan.returns.check(pool, t_before, x_before, attempt, self.books.steps[index])
            returned = back & ~leaving & ~self.books.pending(index)
            if bool(returned.any()):
                self.returned.append((pool.keep(returned), period[returned]))
        if bool(leaving.any()):
            arrived = self.ends.left(pool.keep(leaving))
            if len(arrived.index):
                self.resting.append(arrived)
        return leaving if returned is None else leaving | returned

    def _merged(self, pool: Pool) -> list[Pool]:
        flow = self.motion.at(pool.index)
        if self.plan.merging is None or not isinstance(flow, AbstractSphereFlow):
            return [pool]
        return self.plan.merging.merge(flow, pool)

    def _sorted(self, pool: Pool) -> list[Pool]:
        """By precision, by stiffness, and by whether a trajectory is old enough to be watched for a return."""
        small = self._small(pool)
        parts = []
        if pool.x.dtype == torch.float64:
            smooth, stiff = _divided(pool, self._is_stiff(pool, small))
            parts = [dataclasses.replace(smooth, stiff=False), dataclasses.replace(stiff, stiff=True)]
        else:  # rounding may show in slow motions, and may be what keeps steps small
            fast, slow = _divided(pool, (pool.ratio < SINGLE_PRECISION_FLOOR) | small)
            parts = [fast, slow.to(torch.float64)]
        return [watched for part in parts if len(part.index) for watched in self._watched(part)]

    def _small(self, pool: Pool) -> Tensor:
        if self.plan.stiff is None:
            return torch.zeros_like(pool.t, dtype=torch.bool)
        return seems_small(
            pool, self.books.steps[pool.index], self.motion.extent(pool) if self.motion.rate is None else None
        )

    def _is_stiff(self, pool: Pool, small: Tensor) -> Tensor:
        stiff = torch.zeros_like(small)
        if pool.x.shape[1] * pool.x.shape[2] <= LARGEST_IMPLICIT and bool(small.any()):
            part = pool.keep(small)
            stiff[small] = is_stiff(with_sizes(self.motion.at(part.index), part.sizes), part)
        return stiff

    def _watched(self, pool: Pool) -> list[Pool]:
        returns = self.plan.returns
        if returns is None or pool.anchor is not None:
            return [pool]
        early, late = _divided(pool, self.books.steps[pool.index] >= self.watch_from[pool.index])
        anchored = returns.anchored(late, self.books.steps[late.index])
        return [part for part in (early, anchored) if len(part.index)]

    # Ends.

    def _finish_resting(self) -> None:
        """Attempt to finish all that wait for it, in one batch, and send back those that must go on."""
        parts, self.resting = self.resting, []
        assert self.plan.finisher is not None
        index = torch.cat([part.index for part in parts])
        ratio = torch.cat([part.ratio for part in parts])
        tokens = torch.cat([part.tokens() for part in parts])
        extent = torch.cat([self.motion.extent(part) for part in parts])
        sizes = None if self.motion.sizes is None else self.motion.sizes[index]
        found = self.plan.finisher.finish(self.motion.at(index), Arrivals(tokens, ratio, extent, sizes))
        start = 0
        for part in parts:
            here = slice(start, start + len(part.index))
            leaving, going = self.ends.settle(part, found[here])
            for again in (leaving, *(self._sorted(going) if len(going.index) else ())):
                self._wait(again)
            start = here.stop

    def _close_returned(self) -> None:
        """Attempt to close the orbits of trajectories that came back; stable cycles and slow spirals end."""
        parts, self.returned = self.returned, []
        assert self.plan.closer is not None
        assert self.plan.returns is not None
        index = torch.cat([pool.index for pool, _ in parts])
        tokens = torch.cat([pool.tokens() for pool, _ in parts])
        sizes = None if self.motion.sizes is None else self.motion.sizes[index]
        period = torch.cat([guess for _, guess in parts])
        orbits = self.plan.closer(self.motion.at(index), tokens, period, sizes)
        self.books.evaluations[index] += orbits.evaluations
        start = 0
        for pool, _ in parts:
            part = self.ends.turned(pool, orbits, start)
            if len(part.index):
                self.books.returns[part.index] += 1
                # a neutral or slowly settling motion comes back again and again: each attempt waits twice as long
                self.watch_from[part.index] = 2 * self.books.steps[part.index]
                self._wait(dataclasses.replace(part, anchor=None))
            start += len(pool.index)


def _masked(velocity: Tensor, pool: Pool) -> Tensor:
    live = pool.live
    return velocity if live is None else velocity * live


def _divided(pool: Pool, mask: Tensor) -> tuple[Pool, Pool]:
    """The trajectories outside the mask and those inside."""
    if not bool(mask.any()):
        return pool, pool.keep(slice(0, 0))
    return pool.keep(~mask), pool.keep(mask)
