"""Per-sample bookkeeping of a solve: the best iterate, who is finished and why.

A sample has converged when its *error* is estimated small (``ErrorEstimate``), not when its residual is, and when the
residual has changed its sign beyond the place where the estimate puts the equilibrium (``Crossing``). Samples that
claim the first rest until nobody runs; then all of them are examined together, and those that are refused run again.

Everything is done with selections of rows, never with products by a mask: zero times NaN is NaN, and one bad sample
would poison the good ones. What is one number per sample is a column (``columns``), on CPUs an array of NumPy; the
steps at which nothing happens to any sample cost two norms and a few comparisons.

The best iterate of a sample is not copied at every step. It is the present state of those that were better than ever at
their last step, and of those that came to rest there; only of a sample that gets worse its last state is put aside.
"""

from __future__ import annotations

import collections
from typing import Any, final

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true
from separatrix.core.outcome import Outcome

from ..maps.counted import AffineMap, CountedMap
from ..maps.stacks import rows_from
from ..methods.base import AbstractEquilibriumSolver, States
from .columns import Column, all_of, any_of, column_of, on_host, quietly, tensor_of
from .crossing import Crossing
from .error import COARSE, ErrorEstimate
from .solution import EquilibriumSolution

_RUNNING = -1
_RATE_WINDOW = 8
_PATIENCE = 10
"""Steps without a better residual, near rounding, after which a sample has stalled."""
_REST = 5
"""Steps without a better residual, near rounding, after which a sample is judged by a fresh look at the map there."""
_SHARE_OF_COARSE = 0.75
"""Part of the tolerance that the estimated error of a coarse map may take: there it is off by more."""
_GROWTH = 10.0
"""Growth of the state over the first image beyond which the residual must have fallen in absolute size."""
_RETURN = 1e-3
"""Distance to the state before last, in units of the last step, at which the iteration alternates between two."""


@final
class Progress:
    """How far each sample of a solve has come."""

    def __init__(
        self, method: AbstractEquilibriumSolver[object], z: States, fixed_point_map: CountedMap, *, survey: bool = True
    ) -> None:
        batch = z.shape[0]
        self.method = method
        self.host = on_host(z)
        """Whether columns are arrays."""
        self._xp: Any = numpy if self.host else torch
        self._latest = z
        self._aside = z
        """The best iterates of those that are ``_away``; what else it holds is not looked at."""
        self.residual = self._column(torch.full((batch,), torch.inf, dtype=z.dtype, device=z.device))
        self.error = self.residual
        self._unknown = self.residual
        """Errors of which nothing is known; nothing is written there, nor to the next."""
        self._nobody = self._column(torch.zeros(batch, dtype=torch.bool, device=z.device))
        self._any_refused = False
        """Whether a claim was refused: only then is there a ceiling."""
        self._claimed = self._nobody
        """Who has converged but for the examination."""
        self._away = self._nobody
        """Whose best iterate is not the present state."""
        self._scale = self.residual
        """Norm of the image of the best iterate."""
        self.outcome = self._column(torch.full((batch,), _RUNNING, device=z.device))
        self.running = self.outcome == _RUNNING
        """Mask of the samples that are not finished."""
        self.steps = self._column(torch.zeros(batch, dtype=torch.int64, device=z.device))
        """Steps in which each sample ran."""
        self._seen = self.steps
        """Length of the trace when each sample finished."""
        self._evaluations: list[int] = []
        self.all_running = True
        self.any_running = batch > 0
        self.any_near = False
        """Whether a residual was small enough, at the last step, for its sample to be done soon."""
        self.trace: list[Column] = []
        self._scales: list[Column] = []
        self._points: collections.deque[Tensor] = collections.deque(maxlen=3)
        self._stale = self.steps
        self._stalest = 0
        """No entry of it is larger."""
        self._limit = self.residual
        self._absolute: Column | float = 0.0
        # an affine map has an equilibrium unless I - J is singular: there is nothing to be examined
        self._examines = method.stop != "residual" and not isinstance(fixed_point_map.fixed_point_map, AffineMap)
        self._estimate = ErrorEstimate(z, method.tolerance, directed=self._examines)
        self._crossing = Crossing(z if self._examines else z[:, :0], survey=survey)

    def _column(self, tensor: Tensor) -> Column:
        return tensor.numpy() if self.host else tensor

    @property
    def relative(self) -> Column:
        """Residuals of the best iterates relative to their images; infinite where there is none."""
        xp = self._xp
        with quietly():  # infinite over infinite
            relative = self.residual / xp.clip(self._scale, torch.finfo(self._latest.dtype).tiny, None)
        return xp.where(xp.isinf(self.residual), xp.inf, relative)

    @property
    def best(self) -> States:
        """The best iterate of every sample."""
        if not any_of(self._away):
            return self._latest
        return rows_from(self._aside, tensor_of(self._away), self._latest)

    def images(self, latest: States) -> States:
        """Those of the best iterates, from the images of the present states; of who is away the iterate itself."""
        return rows_from(self._aside, tensor_of(self._away), latest) if any_of(self._away) else latest

    def note(
        self, z: States, f: States, residual: States, size: Column, scale: Column, fixed_point_map: CountedMap
    ) -> None:
        """Take in one step: update the best iterates and decide who is finished. The map may be looked at once more.

        Args:
            z: the states.
            f: their images.
            residual: their difference.
            size: its norms.
            scale: norms of the images.
            fixed_point_map: the map.
        """
        if not self.host:
            return self._note(z, f, residual, size, scale, fixed_point_map)
        with quietly():
            return self._note(z, f, residual, size, scale, fixed_point_map)

    def _note(
        self, z: States, f: States, residual: States, size: Column, scale: Column, fixed_point_map: CountedMap
    ) -> None:
        rounding = fixed_point_map.rounding
        if not self.trace:
            # what is infinite at the start has nothing to fall from
            self._limit = self._xp.where(self._xp.isinf(size), 0.0, self.method.divergence * size)
            self._absolute = self._absolute_part(size, rounding)
        self.trace.append(size)
        self._scales.append(scale)
        self._points.append(z)
        allowed = self._allowed(scale, rounding)
        if self.host and self._uneventful(size, allowed):
            self._improve(z, f, size, scale, fixed_point_map.evaluations)
            return
        done, error = self._judged(z, f, size, scale, allowed, fixed_point_map)
        self._evaluations.append(fixed_point_map.evaluations)
        self._keep_best(z, size, scale, error, done)
        self.steps = self.steps + (1 if self.all_running else self.running)
        stalled = self._stalled(rounding)
        finished = ~(size <= self._limit)  # too large, or NaN
        for others in (done, stalled):
            if others is not self._nobody:
                finished = finished | others
        if not self.all_running:
            finished = finished & self.running
        if any_of(finished):
            if done is not self._nobody and self._examines:
                self._claimed = self._claimed | (done & self.running)
            self._finish(finished, self._code(size, done, stalled))
        if len(self.trace) >= self.method.max_steps and self.any_running:
            exhausted = self.running & (self.steps >= self.method.max_steps)
            self._finish(exhausted, self._why_exhausted())

    def _uneventful(self, size: Column, allowed: Column) -> bool:
        """Whether everybody runs and got better, none is near its end or too far off: most steps of a solve."""
        if not self.all_running or len(self.trace) >= self.method.max_steps:
            return False
        return all_of((size > allowed) & (size < self.residual) & (size <= self._limit))

    def _improve(self, z: States, f: States, size: Column, scale: Column, evaluations: int) -> None:
        """Take in such a step."""
        if self.method.stop != "residual":
            self._estimate.learn(z, f)
        self.any_near = False
        self._evaluations.append(evaluations)
        self._all_better(z, size, scale, self._unknown)
        self.steps = self.steps + 1

    def _claim(self, residual: States, rounding: float) -> None:
        """Hand over all claims at once; who claimed before the last step rests there, with the residual of then."""
        done, self._claimed = self._claimed, self._nobody
        scale = self._scales[-1]
        allowed = self._allowed(scale, rounding)
        unit = self._unit(scale, allowed, rounding)
        columns = (done, self.error, allowed, rounding * scale, unit, scale > _GROWTH * self._scales[0])
        rows, off, within, noise, unit, grown = map(tensor_of, columns)
        self._crossing.claim(rows, residual, off, within, noise, unit, grown, self._estimate.slowest)

    @property
    def hidden(self) -> bool:
        """Whether a claim was refused for a slow direction that nothing had excited."""
        return self._crossing.hidden

    def examine(self, residual: States, fixed_point_map: CountedMap) -> bool:
        """Look beyond the equilibria that are claimed; whether a sample has to run again.

        Args:
            residual: that of the last step.
            fixed_point_map: the map.
        """
        if not any_of(self._claimed):
            return False
        with quietly():
            self._claim(residual, fixed_point_map.rounding)
        best = self.best
        refused = self._crossing.refused(best, fixed_point_map.rounding, fixed_point_map)
        if not any_true(refused):
            return False
        self._any_refused = True
        again = column_of(refused, self.outcome)
        self.outcome = self._xp.where(again, _RUNNING, self.outcome)
        self.running = self.outcome == _RUNNING
        self._stale = self._xp.where(again, 0, self._stale)
        self._estimate = ErrorEstimate(best, self.method.tolerance)
        self.any_running = True
        exhausted = again & (self.steps >= self.method.max_steps)
        with quietly():
            self._finish(exhausted, self._why_exhausted())
        return self.any_running

    def _judged(
        self, z: Tensor, f: Tensor, size: Column, scale: Column, allowed: Column, fixed_point_map: CountedMap
    ) -> tuple[Column, Column]:
        """Who has converged, and the estimated errors."""
        rounding = fixed_point_map.rounding
        near = (size <= allowed) & (size < self._xp.inf)  # an infinite image allows anything
        self.any_near = any_of(near)
        if self.method.stop == "residual":
            return near, self._unknown
        self._estimate.learn(z, f)
        if not self.any_near:
            return self._nobody, self._unknown
        grown = scale > _GROWTH * self._scales[0]
        if not self.all_running:
            near = near & self.running
        nothing_gained = self._nothing_gained(grown, size, scale, rounding)
        if nothing_gained is not self._nobody:
            near = near & ~nothing_gained
        if self._any_refused:
            near = near & (size <= column_of(self._crossing.ceiling, size))
        excluded = self._estimate.excluded(size, allowed)
        if excluded is not None:
            near = near & ~excluded
        if not any_of(near):
            return self._nobody, self._unknown
        unit = self._unit(scale, allowed, rounding)
        rested = self._nobody
        if self._stalest >= _REST:
            rested = (self._stale >= _REST) & (size <= 100 * rounding * scale)
        error = self._estimate.errors(near, size, scale, unit, grown, rested, rounding, fixed_point_map)
        share = _SHARE_OF_COARSE if rounding >= COARSE else 1.0
        return near & (error <= (allowed if share == 1.0 else share * allowed)), error

    def _absolute_part(self, first: Column, rounding: float) -> Column | float:
        tol = self.method.tolerance(rounding)
        if self.method.stop != "rel":
            return tol
        if self.method.atol is not None:
            return self.method.atol
        xp = self._xp
        return 1e-2 * tol * xp.where(xp.isnan(first), 0.0, xp.where(first < 1.0, first, 1.0))

    def _allowed(self, scale: Column, rounding: float) -> Column:
        """The largest error of each sample that counts as none."""
        share = self.method.tolerance(rounding) if self.method.stop == "rel" else 0.0
        return share * scale + self._absolute

    def _unit(self, scale: Column, allowed: Column, rounding: float) -> Column:
        """Size of the state for which the tolerance was made, positive: near zero more than the state itself."""
        unit = allowed / self.method.tolerance(rounding) if self.method.stop == "rel" else scale
        return self._xp.where(unit > 0, unit, 1.0)

    def _nothing_gained(self, grown: Column, size: Column, scale: Column, rounding: float) -> Column:
        """Whether the state grew so much that its rounding hides whether the residual fell at all."""
        return grown & (size + rounding * scale > 0.1 * self.trace[0]) if any_of(grown) else self._nobody

    def _stalled(self, rounding: float) -> Column:
        if self._stalest < _PATIENCE:
            return self._nobody
        return (self._stale >= _PATIENCE) & (self.relative <= min(100 * rounding, 0.1))

    def _keep_best(self, z: Tensor, size: Column, scale: Column, error: Column, done: Column) -> None:
        better = size < self.residual
        if done is not self._nobody:
            better = better | done
        if self.all_running and all_of(better):
            self._all_better(z, size, scale, error)
            return
        before, self._latest = self._latest, z
        worse = self.running & ~better
        self._put_aside(worse & ~self._away, before)
        self._away = self._xp.where(self.running, worse, self._away)
        better = better & self.running
        self.residual = self._xp.where(better, size, self.residual)
        self._scale = self._xp.where(better, scale, self._scale)
        self.error = self._xp.where(better, error, self.error)
        self._stale = self._xp.where(better, 0, self._stale + 1)
        self._stalest += 1

    def _all_better(self, z: Tensor, size: Column, scale: Column, error: Column) -> None:
        self._latest, self._away = z, self._nobody
        self.residual, self._scale, self.error = size, scale, error
        if self._stalest > 0:
            self._stale, self._stalest = self._xp.zeros_like(self._stale), 0

    def _put_aside(self, rows: Column, before: States) -> None:
        """Keep the last states of those that got worse."""
        if any_of(rows):
            self._aside = rows_from(before, tensor_of(rows), self._aside)

    def _code(self, size: Column, done: Column, stalled: Column) -> Column:
        code = self._xp.where(self._xp.isfinite(size), int(Outcome.DIVERGED), int(Outcome.NON_FINITE))
        code = self._xp.where(stalled, int(Outcome.STALLED), code)
        return self._xp.where(done, int(Outcome.CONVERGED), code)

    def _finish(self, now: Column, code: Column) -> None:
        self.outcome = self._xp.where(now, code, self.outcome)
        self.running = self.outcome == _RUNNING
        self._seen = self._xp.where(now, len(self.trace), self._seen)
        self.all_running = False
        self.any_running = any_of(self.running)

    def solution(self) -> EquilibriumSolution:
        """The result, when the loop is over."""
        trace = self._trace()
        columns = (self.outcome, self.residual, self.relative, self.error, self.steps)
        outcome, residual, relative, error, steps = map(tensor_of, columns)
        if self.host:
            evaluations = torch.from_numpy(numpy.array([0, *self._evaluations])[self._seen])
        else:
            evaluations = torch.tensor([0, *self._evaluations], device=steps.device)[self._seen]
        rate = _rate(trace, tensor_of(self._seen))
        failed = outcome != Outcome.CONVERGED
        looks = self._crossing.looks
        value = best = self.best
        if any_true(failed):
            looks = torch.where(failed, 0, looks)
            largest = torch.where(torch.isfinite(trace), trace, 0.0).amax(0)
            overflow = (outcome == Outcome.NON_FINITE) & torch.isfinite(trace[0]) & (largest > 1e3 * trace[0])
            outcome = torch.where(overflow, int(Outcome.DIVERGED), outcome)  # an overflow after growth
            unknown = torch.isinf(residual)  # no evaluation was finite
            nan = torch.full_like(best, torch.nan)
            best = rows_from(nan, unknown, best)
            value = rows_from(nan, failed, best)
            residual, relative = (torch.where(unknown, torch.nan, column) for column in (residual, relative))
        surveyed = self._crossing.surveyed & ~failed
        return EquilibriumSolution(
            value, best, outcome, residual, relative, error, steps, rate, evaluations + looks, surveyed, trace
        )

    def _trace(self) -> Tensor:
        """The residuals of all steps, (steps, batch)."""
        return torch.from_numpy(numpy.stack(self.trace)) if self.host else torch.stack(self.trace)

    def _why_exhausted(self) -> Column:
        """What those who ran to the end of their steps are called."""
        trace = self._trace()
        rate = _rate(trace, torch.full_like(tensor_of(self.steps), len(self.trace)))
        outcome = torch.full_like(tensor_of(self.outcome), int(Outcome.OUT_OF_STEPS))
        if len(self.trace) > 2 * _RATE_WINDOW:
            outcome = torch.where(self._escapes(trace), int(Outcome.NO_EQUILIBRIUM), outcome)
            outcome = torch.where(self._returns(trace), int(Outcome.CYCLE), outcome)
        grew = (trace[-1] > 10 * trace[0]) & (rate > 1)
        return self._column(torch.where(grew, int(Outcome.DIVERGED), outcome))

    def _returns(self, trace: Tensor) -> Tensor:
        """Whether the last state is that of two steps before, one step moves it, and that step does not shrink."""
        before, last, now = self._points
        step = torch.linalg.vector_norm(now - last, dim=-1)
        back = torch.linalg.vector_norm(now - before, dim=-1)
        steady = trace[-1] >= (1 - _RETURN) * trace[-1 - len(trace) // 4]
        return (back <= _RETURN * step) & (step > 0) & steady

    def _escapes(self, trace: Tensor) -> Tensor:
        """Whether, over the second half of the steps, the state grew while the residual did not fall."""
        half = len(self.trace) // 2
        scales = torch.stack([tensor_of(scale) for scale in self._scales])
        grew = scales[half:].amax(0) > 1.2 * scales[:half].amax(0)
        fell = trace[half:].amin(0) < 0.999 * trace[:half].amin(0)
        return grew & ~fell


def _rate(trace: Tensor, steps: Tensor) -> Tensor:
    """Geometric mean of the last ratios of residuals of each sample, up to the step at which it finished."""
    last = (steps - 1).clamp_min(0)
    start = (last - _RATE_WINDOW).clamp_min(0)
    pick = torch.arange(trace.shape[1], device=trace.device)
    ratio = trace[last, pick] / trace[start, pick]
    return torch.where(last > start, ratio ** (1 / (last - start).clamp_min(1)), torch.nan)
