"""Integrate many trajectories on the sphere, each with its own step size and its own end.

Trajectories are advanced in pools of equal row count, small enough for the cache. After every few steps the pools are
sorted anew: finished trajectories leave, merged ones go to smaller pools, others fill the free places.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, ShapeError, as_tensor, require_integer, require_positive

from ..flows.base import AbstractSphereFlow
from ..flows.sphere import check_tokens
from .bookkeeping import Bookkeeping
from .finishing import Finish, finish, nudge
from .merging import merge
from .stepping import Pool, Stepper, start_pool
from .trajectory import Preset, Trajectory, find_preset

ROUND = 12
"""Steps between two sortings of the pools."""

POOL_ENTRIES = 160_000
"""Attention weights of one pool: what stays in a second-level cache together with the slopes of a step."""

SINGLE_PRECISION_FLOOR = 1e-3
"""Speed, in units of the rate, below which rounding in float32 would show."""

REARM = 1e-3
"""Speed, in units of the rate, at which a trajectory counts as having left a saddle."""

MAX_SADDLES = 5
REACH = 20.0
"""Tokens closer than this multiple of the relative speed are taken to be on their way together."""

FINISH_BATCH = 32
"""Attempts to finish that are made together."""

ATOL = {torch.float32: 1e-6, torch.float64: 1e-10}
"""Absolute error per unit of time, in units of the rate."""


def integrate(
    flow: AbstractSphereFlow,
    x0: object,
    preset: str = "default",
    *,
    tol: float = 1e-6,
    t_max: float | None = None,
    max_steps: int = 20_000,
    times: object | None = None,
    merging: bool = True,
    finishing: bool = True,
    normalise: bool = False,
) -> Trajectory:
    """Follow tokens until they rest.

    Args:
        flow: what moves them; its weights broadcast against the batch of ``x0``.
        x0: starts (..., n, d) of unit tokens.
        preset: ``"fast"`` (for proportions over many starts), ``"default"`` or ``"reference"``.
        tol: speed of the fastest token, in units of the spectral norm of V, at which a trajectory rests.
        t_max: time limit; by default 400 over the gap between the two largest real parts of the eigenvalues of V (at
            least a thousandth of its norm).
        max_steps: attempted steps per trajectory.
        times: increasing times at which states are kept (by cubic interpolation between steps).
        merging: carry on tokens that contract to one place as one row.
        finishing: end a trajectory at the stable equilibrium that Newton's method finds beside it, and perturb one
            that rests on a saddle. Without it trajectories stop at ``tol`` or ``t_max`` and nothing else happens.
        normalise: divide the starts by their lengths instead of refusing lengths other than one.

    Returns:
        One outcome per trajectory: converged, out of steps (or time), stalled (slower than ``tol`` / 1e4 with no
        equilibrium nearby), non-finite (the state is then NaN).

    Cost: a few hundred velocities per trajectory; pools hold about 160000 attention weights at a time.

    Example:
        >>> from separatrix.core import spawn
        >>> from separatrix.dynamics import AttentionFlow, integrate, random_tokens
        >>> flow = AttentionFlow.from_coupling([[1.0, 0.2], [0.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]])
        >>> integrate(flow, random_tokens(6, 2, 10, generator=spawn(0))).ok
        True
    """
    tokens = check_tokens(x0, "x0", normalised=normalise)
    settings = find_preset(preset)
    _check_options(flow, tokens, tol, t_max, max_steps)
    batch_shape = tuple(torch.broadcast_shapes(tokens.shape[:-2], flow.instances))
    tokens = tokens.expand(*batch_shape, *tokens.shape[-2:]).double()
    flat = tokens.reshape(-1, *tokens.shape[-2:])
    frames = None if times is None else _check_times(times, flat)
    if frames is not None and settings.early > tol:
        settings = dataclasses.replace(settings, early=tol)  # frames show the motion, not Newton's jump
    rules = _Rules(tol, t_max, max_steps, merging, finishing)
    work = _Work(flow.to(torch.float64), batch_shape, flat, settings, rules, frames)
    work.run()
    return work.books.result(batch_shape)


@final
@dataclasses.dataclass(frozen=True)
class _Rules:
    """When a trajectory ends."""

    tol: float
    t_max: float | None
    max_steps: int
    merging: bool
    finishing: bool


@final
class _Work:
    """One call of ``integrate``: pools in waiting, trajectories that may have arrived, and the ledger."""

    def __init__(
        self,
        flow: AbstractSphereFlow,
        batch_shape: tuple[int, ...],
        x0: Tensor,
        preset: Preset,
        rules: _Rules,
        frames: Tensor | None,
    ) -> None:
        self.shape, self.preset, self.rules = batch_shape or (1,), preset, rules
        self.flow = flow if flow.sizes is None else flow.with_sizes(None)
        self.sizes = None if flow.sizes is None else flow.sizes.expand(*self.shape, x0.shape[1]).flatten(0, -2)
        self.merging = rules.merging and flow.reducible
        self.books = Bookkeeping(x0, frames)
        self.rate = flow.rate.expand(self.shape).reshape(-1).clamp_min(1e-12)
        limit = rules.t_max
        self.limit = torch.full_like(self.rate, limit) if limit else _time_limit(flow, self.rate, self.shape)
        self.waiting: dict[tuple[int, bool, torch.dtype], list[Pool]] = defaultdict(list)
        self.resting: list[Pool] = []
        threshold = self.rate * (max(preset.early, rules.tol) if rules.finishing else rules.tol)
        for index in torch.arange(len(x0), device=x0.device).split(_pool_size(x0.shape[1])):
            pool = self._start(x0[index], index, threshold[index])
            early = (pool.speed < pool.threshold) & rules.finishing  # may have arrived before the first step
            if bool(early.any()):
                self.resting.append(pool.keep(early))
            self._wait(pool.keep(~early).to(preset.transient))

    def run(self) -> None:
        """Advance pools, largest rows first, until nobody waits; attempts to finish are made in batches."""
        while self.waiting or self.resting:
            if self.resting and (not self.waiting or sum(len(part.index) for part in self.resting) >= FINISH_BATCH):
                self._finish_resting()
                continue
            key = max(self.waiting, key=lambda kind: (kind[0], str(kind[2])))
            for part in self._advance(self._take(key)):
                self._wait(part)

    def _flow_at(self, index: Tensor) -> AbstractSphereFlow:
        """The flow of single tokens of some trajectories."""
        return self.flow.select(self.shape, index)

    def _sized_flow_at(self, index: Tensor) -> AbstractSphereFlow:
        """The flow of the rows that the caller passed."""
        flow = self._flow_at(index)
        return flow if self.sizes is None else flow.with_sizes(self.sizes[index])

    def _start(self, x: Tensor, index: Tensor, threshold: Tensor) -> Pool:
        pool = start_pool(self._sized_flow_at(index), x, index, threshold, self.rate[index])
        pool.sizes = None if self.sizes is None else self.sizes[index]
        return pool

    def _wait(self, pool: Pool) -> None:
        if len(pool.index):
            self.waiting[pool.x.shape[1], pool.sizes is not None, pool.x.dtype].append(pool)

    def _take(self, key: tuple[int, bool, torch.dtype]) -> Pool:
        """As many waiting trajectories of one kind as fit in a pool."""
        limit = _pool_size(key[0])
        pool = Pool.join(self.waiting.pop(key))
        if len(pool.index) > limit:
            self.waiting[key] = [pool.keep(slice(limit, None))]
            pool = pool.keep(slice(0, limit))
        return pool

    def _advance(self, pool: Pool) -> list[Pool]:
        """Some steps of one pool; returns what goes on."""
        flow = self._flow_at(pool.index)
        flow = (flow if pool.sizes is None else flow.with_sizes(pool.sizes.double())).to(pool.x.dtype)
        pool.velocity = _velocity(flow, pool)
        stepper = Stepper(self.preset.tableau, self.preset.rtol, ATOL[pool.x.dtype])
        for _ in range(ROUND):
            leaving = self._step(flow, stepper, pool)
            if bool(leaving.any()):
                self._leave(pool.keep(leaving))
                stay = (~leaving).nonzero().squeeze(-1)
                flow, pool = flow.select((len(leaving),), stay), pool.keep(stay)
                if not len(stay):
                    return []
        if self.merging:
            return [part for merged in merge(self._flow_at(pool.index), pool) for part in self._sorted(merged)]
        return self._sorted(pool)

    def _step(self, flow: AbstractSphereFlow, stepper: Stepper, pool: Pool) -> Tensor:
        """One step; returns which trajectories need attention: at rest, out of time or steps, or not finite."""
        index, t_before, rate = pool.index, pool.t, self.rate[pool.index]
        accepted, x_before, v_before = stepper.step(flow, pool, self.limit[index], rate)
        self.books.count_step(index, accepted, stepper.tableau.n_stages - 1)
        self.books.record(pool, t_before, x_before, v_before)
        speed = pool.speed.double()
        rearmed = (pool.threshold == 0) & (speed > REARM * rate) & self.rules.finishing
        pool.threshold = torch.where(rearmed, 0.3 * REARM * rate, pool.threshold)
        out = (pool.t >= self.limit[index]) | (self.books.steps[index] >= self.rules.max_steps)
        return (speed < pool.threshold) | out | ~torch.isfinite(speed) | (pool.h < 1e-12 / rate)

    def _sorted(self, pool: Pool) -> list[Pool]:
        """Trajectories too slow for single precision go on in double."""
        if pool.x.dtype == torch.float64 or not len(pool.index):
            return [pool]
        slow = pool.speed.double() < SINGLE_PRECISION_FLOOR * self.rate[pool.index]
        return [part for part in (pool.keep(~slow), pool.keep(slow).to(torch.float64)) if len(part.index)]

    def _leave(self, pool: Pool) -> None:
        """Close trajectories that are over; those that may have arrived wait for a common attempt to finish."""
        broken = ~torch.isfinite(pool.speed) | (pool.h < 1e-12 / self.rate[pool.index])
        resting = (pool.speed.double() < pool.threshold) & ~broken
        self._close(pool.keep(broken), Outcome.NON_FINITE)
        self._close(pool.keep(~broken & ~resting), Outcome.OUT_OF_STEPS)
        if not self.rules.finishing:
            self._close(pool.keep(resting), Outcome.CONVERGED)
        elif bool(resting.any()):
            self.resting.append(pool.keep(resting))

    def _close(self, pool: Pool, outcome: Outcome, point: Tensor | None = None) -> None:
        if len(pool.index):
            tokens = pool.tokens() if point is None else point
            tokens = torch.full_like(tokens, torch.nan) if outcome == Outcome.NON_FINITE else tokens
            self.books.close(self._sized_flow_at(pool.index), pool, tokens, outcome)

    def _finish_resting(self) -> None:
        """Attempt to finish everybody who waits for it, in one batch, and send back those who must go on."""
        parts, self.resting = self.resting, []
        index = torch.cat([part.index for part in parts])
        ratio = torch.cat([part.speed.double() for part in parts]) / self.rate[index]
        tokens = torch.cat([part.tokens() for part in parts])
        sizes = None if self.sizes is None else self.sizes[index]
        found = finish(self._flow_at(index), tokens, (REACH * ratio).clamp(1e-3, 0.2), sizes)
        start = 0
        for part in parts:
            here = slice(start, start + len(part.index))
            self._settle(part, found[here], ratio[here])
            start = here.stop

    def _settle(self, pool: Pool, found: Finish, ratio: Tensor) -> None:
        """End at stable equilibria, leave saddles, go on elsewhere with a lower threshold."""
        tol = self.rules.tol
        at_rest, stuck = ratio < tol, self.books.saddles[pool.index] >= MAX_SADDLES
        done = found.stable | (at_rest & found.found & (~found.unstable | stuck))
        stalled = ~found.found & (ratio < 1e-4 * tol)
        leaves_saddle = at_rest & found.unstable & ~done
        self._close(pool.keep(done), Outcome.CONVERGED, found.point[done])
        self._close(pool.keep(stalled), Outcome.STALLED)
        if bool(leaves_saddle.any()):
            self._wait(self._restart(pool.keep(leaves_saddle), found.point[leaves_saddle]))
        part = pool.keep(~done & ~stalled & ~leaves_saddle)
        part.threshold = part.threshold * 0.3
        for sorted_part in self._sorted(part):
            self._wait(sorted_part)

    def _restart(self, pool: Pool, point: Tensor) -> Pool:
        """Beside the saddle, with all tokens apart; no attempt to finish until the trajectory has left."""
        index = pool.index
        self.books.saddles[index] += 1
        fresh = self._start(nudge(point), index, torch.zeros_like(pool.t))
        fresh.t = pool.t
        return fresh


def _velocity(flow: AbstractSphereFlow, pool: Pool) -> Tensor:
    velocity, live = flow.velocity(pool.x, pool.t), pool.live
    return velocity if live is None else velocity * live


def _pool_size(rows: int) -> int:
    return max(4, min(1024, POOL_ENTRIES // rows**2))


def _time_limit(flow: AbstractSphereFlow, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    real = torch.linalg.eigvals(flow.value_sum).real.sort(dim=-1, descending=True).values
    gap = (real[..., 0] - real[..., 1]).expand(shape).reshape(-1)
    return 400 / torch.maximum(torch.minimum(gap, rate), 1e-3 * rate)


def _check_options(flow: AbstractSphereFlow, x: Tensor, tol: float, t_max: float | None, max_steps: int) -> None:
    if x.shape[-1] != flow.dim:
        raise ShapeError(f"x0 must have tokens of dimension {flow.dim}; got shape {tuple(x.shape)}.")
    if not (tol >= 0 and math.isfinite(tol)):
        raise InvalidInput(f"tol must be a number of at least 0; got {tol}.")
    if t_max is not None:
        require_positive(t_max, "t_max")
    require_integer(max_steps, "max_steps", at_least=1)


def _check_times(times: object, x: Tensor) -> Float[Tensor, " frames"]:
    frames = as_tensor(times, "times", dtype=torch.float64).to(x.device)
    if frames.ndim != 1 or not len(frames) or bool((frames.diff() <= 0).any()) or float(frames[0]) < 0:
        raise InvalidInput("times must be an increasing list of numbers, not negative.")
    return frames
