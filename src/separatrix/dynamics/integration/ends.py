"""The ends of trajectories: at rest, in a cycle, at the last time, or lost; and what must go on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core import Outcome

from .bookkeeping import Bookkeeping
from .finishing import Finish, leave, nudge
from .motion import Motion
from .plan import Plan
from .pool import Pool
from .stopping import STALLED

if TYPE_CHECKING:
    from .orbits.closing import Orbits

MAX_SADDLES = 5

FARTHEST, LATEST = 1e100, 1e250
"""Entries of a state, over those of the start or one, and times, beyond which a motion that is to end has escaped."""


@final
class Ends:
    """What ends the trajectories of one integration; ``limit`` is the last time of each."""

    def __init__(self, motion: Motion, plan: Plan, books: Bookkeeping, limit: Float[Tensor, " batch"]) -> None:
        self.motion, self.plan, self.books, self.limit = motion, plan, books, limit

    def begun(self, x: Tensor, index: Tensor, threshold: float) -> Pool:
        """Trajectories at time zero."""
        if self.motion.rate is None:
            self.books.evaluations[index] += 2  # with the choice of the first step
        return self.motion.start(self.plan, x, index, threshold)

    def stuck(self, pool: Pool) -> Bool[Tensor, " batch"]:
        """Steps that lead nowhere."""
        return pool.h < self.plan.control.smallest(pool)

    def escaped(self, pool: Pool) -> Bool[Tensor, " batch"]:
        """Motions that grow without bound, where an end is sought."""
        if self.motion.rate is not None or not self.plan.stop.sought:
            return torch.zeros_like(pool.t, dtype=torch.bool)
        start = self.books.start[pool.index].abs().flatten(1).amax(dim=-1).clamp_min(1.0)
        return (pool.x.abs().flatten(1).amax(dim=-1) > FARTHEST * start) | (pool.t > LATEST)

    def left(self, pool: Pool) -> Pool:
        """Close trajectories that are over; returns those that may have arrived, for a common attempt to finish."""
        escaped = self.escaped(pool)
        broken = (~torch.isfinite(pool.speed) | self.stuck(pool)) & ~escaped
        resting = self.plan.stop.resting(pool) & ~broken & ~escaped
        self.close(pool.keep(broken), Outcome.NON_FINITE)
        self.close(pool.keep(escaped), Outcome.DIVERGED)
        over = ~broken & ~resting & ~escaped
        timely = pool.t >= self.limit[pool.index]
        self.close(pool.keep(over & timely), self.plan.stop.at_limit)
        self.close(pool.keep(over & ~timely), Outcome.OUT_OF_STEPS)
        if self.plan.finisher is None:
            self.close(pool.keep(resting), Outcome.CONVERGED)
            resting = torch.zeros_like(resting)
        return pool.keep(resting)

    def close(self, pool: Pool, outcome: Outcome, point: Tensor | None = None) -> None:
        """The trajectories of a pool end where they are, or at a point."""
        if len(pool.index):
            tokens = pool.tokens() if point is None else point
            tokens = torch.full_like(tokens, torch.nan) if outcome == Outcome.NON_FINITE else tokens
            self.books.close(self.motion.sized_at(pool.index), pool, tokens, outcome)

    def settle(self, pool: Pool, found: Finish) -> tuple[Pool, Pool]:
        """End at stable equilibria; returns those that leave saddles, and those that go on with a lower threshold."""
        tol, ratio = self.plan.stop.tol, pool.ratio
        at_rest = (ratio < tol) | (pool.speed == 0)
        stuck = self.books.saddles[pool.index] >= MAX_SADDLES
        shown = self.books.pending(pool.index)
        jump = (found.point - pool.tokens()).abs().flatten(1).amax(dim=-1)
        resolution = self.plan.control.resolution(pool)
        here = at_rest | (jump <= resolution)
        lands = (found.doubt <= resolution) & ~found.unstable
        done = found.stable | lands | (here & found.found & ~found.unstable)
        done = done & (~shown | (jump <= self.plan.jump))
        at_saddle = at_rest & found.unstable & ~done & ~shown
        stalled = (~found.found & (ratio < STALLED * tol)) | (at_saddle & stuck)
        leaves_saddle = at_saddle & ~stuck
        self.close(pool.keep(done), Outcome.CONVERGED, found.point[done])
        self.close(pool.keep(stalled), Outcome.STALLED)
        part = pool.keep(~done & ~stalled & ~leaves_saddle)
        part.threshold = part.threshold * 0.3
        leaving = pool.keep(leaves_saddle)
        return self._restart(leaving, found.point[leaves_saddle]) if len(leaving.index) else leaving, part

    def _restart(self, pool: Pool, point: Tensor) -> Pool:
        """Beside the saddle, with all tokens apart; no attempt to finish until the trajectory has left."""
        index = pool.index
        self.books.saddles[index] += 1
        flow, size = self.motion.at(index), 1e-6 * self.motion.scale(pool, point)
        beside = nudge(flow, point, size)
        if self.motion.rate is None:
            beside = leave(flow, pool.x, point, size, beside)
        fresh = self.begun(beside, index, 0.0)
        fresh.t = pool.t
        return fresh

    def turned(self, pool: Pool, orbits: Orbits, first: int) -> Pool:
        """End in the orbits that were closed, from the place ``first`` on, and at foci; returns those that go on."""
        places = range(first, first + len(pool.index))
        closed = [self._ends_here(orbits, place) for place in places]
        done = torch.tensor(closed, dtype=torch.bool, device=pool.x.device)
        self.close(pool.keep(done), Outcome.CYCLE, orbits.point[first : places.stop][done])
        for place, element in zip(places, pool.index.tolist(), strict=True):
            if closed[place - first]:
                self.books.cycles[element] = orbits.certificates[place]
        rest = orbits.rest[first : places.stop]
        falls = ~done & torch.isfinite(rest).flatten(1).all(dim=-1)
        self.close(pool.keep(falls), Outcome.CONVERGED, rest[falls])
        return pool.keep(~done & ~falls)

    def _ends_here(self, orbits: Orbits, place: int) -> bool:
        """On a stable orbit that it came near; on a neutral one if it was on it, and was not just passing by."""
        floquet = orbits.certificates.get(place)
        if floquet is None:
            return False
        if self.plan.any_cycle or (floquet.stable and place in orbits.reached):
            return True
        return floquet.marginal and place in orbits.stays
