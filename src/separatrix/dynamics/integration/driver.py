"""The one integrator: many trajectories, each with its own step size and its own end.

Trajectories are advanced in pools of equal row count, small enough for the cache. After every few steps the pools are
sorted anew: finished trajectories leave, merged ones go to smaller pools, others fill the free places. What a step is,
when it is good enough, what ends a trajectory and what may end it early are objects.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Outcome

from ..flows.base import AbstractFlow, AbstractSphereFlow
from .bookkeeping import Bookkeeping
from .finishing import Arrivals, Finish, leave, nudge
from .methods.base import AbstractMethod
from .plan import Plan
from .pool import Pool
from .stepping import LARGEST_IMPLICIT, advance, is_stiff, seems_small
from .stopping import STALLED

if TYPE_CHECKING:
    from .orbits.closing import Orbits

ROUND = 12
"""Steps between two sortings of the pools."""

POOL_ENTRIES = 160_000
"""Attention weights, or entries, of one pool: what stays in a second-level cache with the slopes of a step."""

SINGLE_PRECISION_FLOOR = 1e-3
"""Relative speed below which rounding in float32 would show."""

LARGEST_SINGLE = 1e9
"""Rates beyond this, or below its inverse, are not left to float32."""

MAX_SADDLES = 5
BATCH, ORBITS = 32, 512
"""Attempts to finish, and to close an orbit, that are made together."""

SMALLEST = 1e-280
"""Instead of zero in denominators."""

FARTHEST, LATEST = 1e100, 1e250
"""Entries of a state, over those of the start or one, and times, beyond which a motion that is to end has escaped."""


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
    ) -> None:
        self.shape, self.plan, self.limit = batch_shape or (1,), plan, limit
        self.flow, self.sizes, self.rate = flow, None, None
        if isinstance(flow, AbstractSphereFlow):
            self.rate = flow.rate.expand(self.shape).reshape(-1).clamp_min(SMALLEST)
            if flow.sizes is not None:
                self.sizes = flow.sizes.expand(*self.shape, x0.shape[1]).flatten(0, -2)
                self.flow = flow.with_sizes(None)
        self.books = Bookkeeping(x0, frames)
        self.waiting: dict[tuple[int, bool, torch.dtype, bool, bool], list[Pool]] = defaultdict(list)
        self.resting: list[Pool] = []
        self.returned: list[tuple[Pool, Tensor]] = []
        self.watch_from = torch.full_like(self.books.steps, plan.returns.patience if plan.returns is not None else 0)
        for index in torch.arange(len(x0), device=x0.device).split(self._pool_size(*x0.shape[1:])):
            self._begin(self._start(x0[index], index, plan.stop.first_threshold))

    def run(self) -> None:
        """Advance pools, largest rows first, until nobody waits; attempts to finish are made in batches."""
        while self.waiting or self.resting or self.returned:
            if self._full(self.resting):
                self._finish_resting()
            elif self._full([pool for pool, _ in self.returned], ORBITS):
                self._close_returned()
            elif self.waiting:
                key = max(self.waiting, key=lambda kind: (kind[0], str(kind[1:])))
                for part in self._advance(self._take(key)):
                    self._wait(part)

    def _full(self, parts: list[Pool], batch: int = BATCH) -> bool:
        return bool(parts) and (not self.waiting or sum(len(part.index) for part in parts) >= batch)

    # Flows and pools.

    def _flow_at(self, index: Tensor) -> AbstractFlow:
        """The flow of single tokens of some trajectories."""
        return self.flow.select(self.shape, index)

    def _sized_flow_at(self, index: Tensor) -> AbstractFlow:
        """The flow of the rows that the caller passed."""
        return _with_sizes(self._flow_at(index), None if self.sizes is None else self.sizes[index])

    def _begin(self, pool: Pool) -> None:
        """Trajectories that may have arrived before the first step are looked at first."""
        stop = self.plan.stop
        early = stop.resting(pool) & (self.plan.finisher is not None)
        if bool(early.any()):
            self.resting.append(pool.keep(early))
        going = pool.keep(~early & (pool.t < self.limit[pool.index]))
        exact, rough = _divided(going, self._fits_single(going))
        for part in (exact, rough.to(self.plan.transient)):
            if self.plan.returns is not None and self.plan.returns.patience == 0:
                part = self.plan.returns.anchored(part, self.books.steps[part.index])
            self._wait(part)
        self._close(pool.keep(~early & (pool.t >= self.limit[pool.index])), stop.at_limit)

    def _fits_single(self, pool: Pool) -> Tensor:
        """Whether squares of speeds, down to those that count as slow, are numbers in float32."""
        if self.rate is None:
            return torch.ones_like(pool.t, dtype=torch.bool)
        rate = self.rate[pool.index]
        return (rate > 1 / LARGEST_SINGLE) & (rate < LARGEST_SINGLE)

    def _start(self, x: Tensor, index: Tensor, threshold: float) -> Pool:
        """Trajectories at time zero."""
        flow = self._sized_flow_at(index)
        zeros = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        velocity = flow.velocity(x, zeros)
        self.books.evaluations[index] += 0 if self.rate is not None else 2  # with the choice of the first step
        unit = torch.full_like(zeros, SMALLEST) if self.rate is None else self.rate[index]
        length = self._length(flow, x, velocity)
        labels = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
        return Pool(
            index=index,
            x=x,
            velocity=velocity,
            speed=torch.linalg.vector_norm(velocity, dim=-1).amax(dim=-1),
            t=zeros,
            h=self.plan.control.first_size(flow, x, velocity, unit, length, self.plan.method.order),
            last_error=torch.ones_like(zeros),
            threshold=torch.full_like(zeros, threshold),
            unit=unit,
            length=length,
            labels=labels,
            sizes=None if self.sizes is None else self.sizes[index],
        )

    def _length(self, flow: AbstractFlow, x: Tensor, velocity: Tensor) -> Tensor:
        """The larger of the size of a state and of the way on which its velocity changes, if that is below one.

        The second, |f|^2 / |f' f|, speaks for states at the origin.
        """
        ones = torch.ones(len(x), dtype=torch.float64, device=x.device)
        if not self.plan.own_length:
            return ones
        if not self.plan.stop.sought:  # a derivative is not asked for
            length = x.abs().flatten(1).amax(dim=-1)
            return torch.where(length > 0, torch.minimum(length, ones), ones)
        speed = torch.linalg.vector_norm(velocity.flatten(1), dim=-1)
        change = torch.linalg.vector_norm(flow.jvp(x, velocity).flatten(1), dim=-1)
        way = torch.where((speed > 0) & (change > 0), speed * (speed / change.clamp_min(SMALLEST)), 0.0)
        length = torch.maximum(x.abs().flatten(1).amax(dim=-1), way.nan_to_num(nan=1.0))
        return torch.where(length > 0, torch.minimum(length, ones), ones)

    def _wait(self, pool: Pool) -> None:
        if len(pool.index):
            self.waiting[pool.key].append(pool)

    def _take(self, key: tuple[int, bool, torch.dtype, bool, bool]) -> Pool:
        """As many waiting trajectories of one kind as fit in a pool."""
        pool = Pool.join(self.waiting.pop(key))
        limit = self._pool_size(*pool.x.shape[1:])
        if len(pool.index) > limit:
            self.waiting[key] = [pool.keep(slice(limit, None))]
            pool = pool.keep(slice(0, limit))
        return pool

    def _pool_size(self, rows: int, dim: int) -> int:
        return max(4, min(1024, POOL_ENTRIES // (rows * (dim if self.rate is None else rows))))

    # Rounds of steps.

    def _advance(self, pool: Pool) -> list[Pool]:
        """Some steps of one pool; returns what goes on."""
        flow = _with_sizes(self._flow_at(pool.index), None if pool.sizes is None else pool.sizes.double())
        flow = flow.to(pool.x.dtype)
        if self.rate is not None:
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
        if self.rate is not None or not self.plan.stop.sought:
            return
        change = flow.jvp(pool.x, pool.velocity).flatten(1)
        decay = torch.linalg.vector_norm(change, dim=-1) / torch.linalg.vector_norm(pool.velocity.flatten(1), dim=-1)
        pool.unit = (self._extent(pool) * decay).nan_to_num(nan=0.0).clamp_min(SMALLEST)

    def _extent(self, pool: Pool) -> Tensor:
        return torch.linalg.vector_norm(pool.tokens() - self.books.start[pool.index], dim=-1).amax(dim=-1)

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
        leaving = self.plan.stop.resting(pool) | out | ~torch.isfinite(pool.speed) | self._stuck(pool)
        leaving = leaving | self._escaped(pool)
        returned = None
        if pool.anchor is not None and self.plan.returns is not None:
            back, period = self.plan.returns.check(pool, t_before, x_before, attempt, self.books.steps[index])
            returned = back & ~leaving & ~self.books.pending(index)
            if bool(returned.any()):
                self.returned.append((pool.keep(returned), period[returned]))
        if bool(leaving.any()):
            self._leave(pool.keep(leaving))
        return leaving if returned is None else leaving | returned

    def _stuck(self, pool: Pool) -> Tensor:
        return pool.h < self.plan.control.smallest(pool)

    def _escaped(self, pool: Pool) -> Tensor:
        """Motions that grow without bound, where an end is sought."""
        if self.rate is not None or not self.plan.stop.sought:
            return torch.zeros_like(pool.t, dtype=torch.bool)
        start = self.books.start[pool.index].abs().flatten(1).amax(dim=-1).clamp_min(1.0)
        return (pool.x.abs().flatten(1).amax(dim=-1) > FARTHEST * start) | (pool.t > LATEST)

    def _merged(self, pool: Pool) -> list[Pool]:
        flow = self._flow_at(pool.index)
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
        return seems_small(pool, self.books.steps[pool.index], self._extent(pool) if self.rate is None else None)

    def _is_stiff(self, pool: Pool, small: Tensor) -> Tensor:
        stiff = torch.zeros_like(small)
        if pool.x.shape[1] * pool.x.shape[2] <= LARGEST_IMPLICIT and bool(small.any()):
            part = pool.keep(small)
            stiff[small] = is_stiff(_with_sizes(self._flow_at(part.index), part.sizes), part)
        return stiff

    def _watched(self, pool: Pool) -> list[Pool]:
        returns = self.plan.returns
        if returns is None or pool.anchor is not None:
            return [pool]
        early, late = _divided(pool, self.books.steps[pool.index] >= self.watch_from[pool.index])
        anchored = returns.anchored(late, self.books.steps[late.index])
        return [part for part in (early, anchored) if len(part.index)]

    # Ends.

    def _leave(self, pool: Pool) -> None:
        """Close trajectories that are over; those that may have arrived wait for a common attempt to finish."""
        escaped = self._escaped(pool)
        broken = (~torch.isfinite(pool.speed) | self._stuck(pool)) & ~escaped
        resting = self.plan.stop.resting(pool) & ~broken & ~escaped
        self._close(pool.keep(broken), Outcome.NON_FINITE)
        self._close(pool.keep(escaped), Outcome.DIVERGED)
        over = ~broken & ~resting & ~escaped
        timely = pool.t >= self.limit[pool.index]
        self._close(pool.keep(over & timely), self.plan.stop.at_limit)
        self._close(pool.keep(over & ~timely), Outcome.OUT_OF_STEPS)
        if self.plan.finisher is None:
            self._close(pool.keep(resting), Outcome.CONVERGED)
        elif bool(resting.any()):
            self.resting.append(pool.keep(resting))

    def _close(self, pool: Pool, outcome: Outcome, point: Tensor | None = None) -> None:
        if len(pool.index):
            tokens = pool.tokens() if point is None else point
            tokens = torch.full_like(tokens, torch.nan) if outcome == Outcome.NON_FINITE else tokens
            self.books.close(self._sized_flow_at(pool.index), pool, tokens, outcome)

    def _finish_resting(self) -> None:
        """Attempt to finish all that wait for it, in one batch, and send back those that must go on."""
        parts, self.resting = self.resting, []
        assert self.plan.finisher is not None
        index = torch.cat([part.index for part in parts])
        ratio = torch.cat([part.ratio for part in parts])
        tokens = torch.cat([part.tokens() for part in parts])
        extent = torch.cat([self._extent(part) for part in parts])
        sizes = None if self.sizes is None else self.sizes[index]
        found = self.plan.finisher.finish(self._flow_at(index), Arrivals(tokens, ratio, extent, sizes))
        start = 0
        for part in parts:
            here = slice(start, start + len(part.index))
            self._settle(part, found[here])
            start = here.stop

    def _settle(self, pool: Pool, found: Finish) -> None:
        """End at stable equilibria, leave saddles, go on elsewhere with a lower threshold."""
        tol, ratio = self.plan.stop.tol, pool.ratio
        at_rest = (ratio < tol) | (pool.speed == 0)
        stuck = self.books.saddles[pool.index] >= MAX_SADDLES
        shown = self.books.pending(pool.index)
        jump = (found.point - pool.tokens()).abs().flatten(1).amax(dim=-1)
        here = at_rest | (jump <= self.plan.control.resolution(pool))
        done = found.stable | (here & found.found & ~found.unstable)
        done = done & (~shown | (jump <= self.plan.jump))
        at_saddle = at_rest & found.unstable & ~done & ~shown
        stalled = (~found.found & (ratio < STALLED * tol)) | (at_saddle & stuck)
        leaves_saddle = at_saddle & ~stuck
        self._close(pool.keep(done), Outcome.CONVERGED, found.point[done])
        self._close(pool.keep(stalled), Outcome.STALLED)
        if bool(leaves_saddle.any()):
            self._wait(self._restart(pool.keep(leaves_saddle), found.point[leaves_saddle]))
        part = pool.keep(~done & ~stalled & ~leaves_saddle)
        if len(part.index):
            part.threshold = part.threshold * 0.3
            for sorted_part in self._sorted(part):
                self._wait(sorted_part)

    def _restart(self, pool: Pool, point: Tensor) -> Pool:
        """Beside the saddle, with all tokens apart; no attempt to finish until the trajectory has left."""
        index = pool.index
        self.books.saddles[index] += 1
        flow, size = self._flow_at(index), 1e-6 * self._scale(pool, point)
        beside = nudge(flow, point, size)
        if self.rate is None:
            beside = leave(flow, pool.x, point, size, beside)
        fresh = self._start(beside, index, 0.0)
        fresh.t = pool.t
        return fresh

    def _scale(self, pool: Pool, point: Tensor) -> Tensor:
        """The length against which a perturbation is small: one on the sphere, and where nothing else is known."""
        if self.rate is not None:
            return torch.ones_like(pool.t)
        size = self._extent(pool) + point.flatten(1).abs().amax(dim=-1)
        return torch.where(size > 0, size, torch.ones_like(size))

    def _close_returned(self) -> None:
        """Attempt to close the orbits of trajectories that came back; stable cycles and slow spirals end."""
        parts, self.returned = self.returned, []
        assert self.plan.closer is not None
        assert self.plan.returns is not None
        index = torch.cat([pool.index for pool, _ in parts])
        tokens = torch.cat([pool.tokens() for pool, _ in parts])
        sizes = None if self.sizes is None else self.sizes[index]
        period = torch.cat([guess for _, guess in parts])
        orbits = self.plan.closer(self._flow_at(index), tokens, period, sizes)
        self.books.evaluations[index] += orbits.evaluations
        start = 0
        for pool, _ in parts:
            places = range(start, start + len(pool.index))
            closed = [self._ends_here(orbits, place) for place in places]
            done = torch.tensor(closed, dtype=torch.bool, device=pool.x.device)
            self._close(pool.keep(done), Outcome.CYCLE, orbits.point[start : start + len(pool.index)][done])
            for place, element in zip(places, pool.index.tolist(), strict=True):
                if closed[place - start]:
                    self.books.cycles[element] = orbits.certificates[place]
            rest = orbits.rest[start : start + len(pool.index)]
            falls = ~done & torch.isfinite(rest).flatten(1).all(dim=-1)
            self._close(pool.keep(falls), Outcome.CONVERGED, rest[falls])
            part = pool.keep(~done & ~falls)
            if len(part.index):
                self.books.returns[part.index] += 1
                # a neutral or slowly settling motion comes back again and again: each attempt waits twice as long
                self.watch_from[part.index] = 2 * self.books.steps[part.index]
                self._wait(dataclasses.replace(part, anchor=None))
            start += len(pool.index)

    def _ends_here(self, orbits: Orbits, place: int) -> bool:
        """On a stable orbit; on a neutral one if the trajectory was on it, and was not just passing by."""
        floquet = orbits.certificates.get(place)
        if floquet is None:
            return False
        return self.plan.any_cycle or floquet.stable or (floquet.marginal and place in orbits.stays)


def _with_sizes(flow: AbstractFlow, sizes: Tensor | None) -> AbstractFlow:
    if sizes is None:
        return flow
    assert isinstance(flow, AbstractSphereFlow)
    return flow.with_sizes(sizes)


def _masked(velocity: Tensor, pool: Pool) -> Tensor:
    live = pool.live
    return velocity if live is None else velocity * live


def _divided(pool: Pool, mask: Tensor) -> tuple[Pool, Pool]:
    """The trajectories outside the mask and those inside."""
    if not bool(mask.any()):
        return pool, pool.keep(slice(0, 0))
    return pool.keep(~mask), pool.keep(mask)
