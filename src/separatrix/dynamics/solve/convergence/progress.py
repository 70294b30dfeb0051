"""Per-sample bookkeeping of a solve: the best iterate, who is finished and why.

A sample has converged when its *error* is estimated small (``ErrorEstimate``), not when its residual is, and when the
residual has changed its sign beyond the place where the estimate puts the equilibrium (``Crossing``). Samples that
claim the first rest until nobody runs; then all of them are examined together, and those that are refused run again.

Everything is done with selections of rows, never with products by a mask: zero times NaN is NaN, and one bad sample
would poison the good ones. The steps at which nothing happens to any sample cost four norms and a few comparisons.
"""

from __future__ import annotations

import collections
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true, any_true
from separatrix.core.outcome import Outcome

from ..maps.counted import AffineMap, CountedMap
from ..maps.stacks import rows_from
from ..methods.base import AbstractEquilibriumSolver, States
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

    def __init__(self, method: AbstractEquilibriumSolver[object], z: States, fixed_point_map: CountedMap) -> None:
        batch = z.shape[0]
        self.method = method
        self.best = z
        self.residual = torch.full((batch,), torch.inf, dtype=z.dtype, device=z.device)
        self.error = self.residual
        self._unknown = self.residual
        """Errors of which nothing is known; nothing is written there, nor to the next."""
        self._nobody = torch.zeros(batch, dtype=torch.bool, device=z.device)
        self._scale = self.residual
        """Norm of the image of the best iterate."""
        self.outcome = torch.full((batch,), _RUNNING, device=z.device)
        self.steps = torch.zeros(batch, dtype=torch.int64, device=z.device)
        """Steps in which each sample ran."""
        self._seen = self.steps
        """Length of the trace when each sample finished."""
        self._evaluations: list[int] = []
        self.all_running = True
        self.any_running = batch > 0
        self.trace: list[Tensor] = []
        self._scales: list[Tensor] = []
        self._points: collections.deque[Tensor] = collections.deque(maxlen=3)
        self._stale = torch.zeros(batch, dtype=torch.int64, device=z.device)
        self._stalest = 0
        """No entry of it is larger."""
        self._limit = self.residual
        self._absolute: Tensor | float = 0.0
        # an affine map has an equilibrium unless I - J is singular: there is nothing to be examined
        self._examines = method.stop != "residual" and not isinstance(fixed_point_map.fixed_point_map, AffineMap)
        self._estimate = ErrorEstimate(z, method.tolerance, directed=self._examines)
        self._crossing = Crossing(z if self._examines else z[:, :0])

    @property
    def running(self) -> Tensor:
        """Mask of the samples that are not finished."""
        return self.outcome == _RUNNING

    @property
    def relative(self) -> Tensor:
        """Residuals of the best iterates relative to their images; infinite where there is none."""
        relative = self.residual / self._scale.clamp_min(torch.finfo(self._scale.dtype).tiny)
        return torch.where(torch.isinf(self.residual), torch.inf, relative)

    def note(self, z: States, f: States, residual: States, fixed_point_map: CountedMap) -> None:
        """Take in one step: update the best iterates and decide who is finished. The map may be looked at once more."""
        rounding = fixed_point_map.rounding
        size = torch.linalg.vector_norm(residual, dim=-1)
        scale = torch.linalg.vector_norm(f, dim=-1)
        if not self.trace:
            self._limit = self.method.divergence * size
            self._absolute = self._absolute_part(size, rounding)
        self.trace.append(size)
        self._scales.append(scale)
        self._points.append(z)
        allowed = self._allowed(scale, rounding)
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
            finished &= self.running
        if any_true(finished):
            if done is not self._nobody and any_true(done) and self._examines:
                unit = self._unit(scale, allowed, rounding)
                slowest = self._estimate.slowest
                self._crossing.claim(done, residual, error, allowed, rounding * scale, unit, slowest)
            self._finish(finished, self._code(size, done, stalled))
        if len(self.trace) >= self.method.max_steps and self.any_running:
            exhausted = self.running & (self.steps >= self.method.max_steps)
            self._finish(exhausted, self._why_exhausted())

    def examine(self, fixed_point_map: CountedMap) -> bool:
        """Look beyond the equilibria that are claimed; whether a sample has to run again."""
        if not any_true(self._crossing.waiting):
            return False
        refused = self._crossing.refused(self.best, fixed_point_map.rounding, fixed_point_map)
        if not any_true(refused):
            return False
        self.outcome = torch.where(refused, _RUNNING, self.outcome)
        self._stale = torch.where(refused, 0, self._stale)
        self._estimate = ErrorEstimate(self.best, self.method.tolerance)
        self.any_running = True
        exhausted = refused & (self.steps >= self.method.max_steps)
        self._finish(exhausted, self._why_exhausted())
        return self.any_running

    def _judged(
        self, z: Tensor, f: Tensor, size: Tensor, scale: Tensor, allowed: Tensor, fixed_point_map: CountedMap
    ) -> tuple[Tensor, Tensor]:
        """Who has converged, and the estimated errors."""
        rounding = fixed_point_map.rounding
        near = size <= allowed
        if self.method.stop == "residual":
            return near, self._unknown
        self._estimate.learn(z, f)
        if not any_true(near):
            return self._nobody, self._unknown
        grown = scale > _GROWTH * self._scales[0]
        near = near & self.running & ~self._nothing_gained(grown, size, scale, rounding)
        near = near & (size <= self._crossing.ceiling)
        if not any_true(near):
            return self._nobody, self._unknown
        unit = self._unit(scale, allowed, rounding)
        rested = self._nobody
        if self._stalest >= _REST:
            rested = (self._stale >= _REST) & (size <= 100 * rounding * scale)
        error = self._estimate.errors(near, size, scale, unit, grown, rested, rounding, fixed_point_map)
        share = _SHARE_OF_COARSE if rounding >= COARSE else 1.0
        return near & (error <= share * allowed), error

    def _absolute_part(self, first: Tensor, rounding: float) -> Tensor | float:
        tol = self.method.tolerance(rounding)
        if self.method.stop != "rel":
            return tol
        if self.method.atol is not None:
            return self.method.atol
        return 1e-2 * tol * first.nan_to_num().clamp_max(1.0)

    def _allowed(self, scale: Tensor, rounding: float) -> Tensor:
        """The largest error of each sample that counts as none."""
        share = self.method.tolerance(rounding) if self.method.stop == "rel" else 0.0
        return share * scale + self._absolute

    def _unit(self, scale: Tensor, allowed: Tensor, rounding: float) -> Tensor:
        """Size of the state for which the tolerance was made, positive: near zero more than the state itself."""
        unit = allowed / self.method.tolerance(rounding) if self.method.stop == "rel" else scale
        return torch.where(unit > 0, unit, 1.0)

    def _nothing_gained(self, grown: Tensor, size: Tensor, scale: Tensor, rounding: float) -> Tensor:
        """Whether the state grew so much that its rounding hides whether the residual fell at all."""
        return grown & (size + rounding * scale > 0.1 * self.trace[0]) if any_true(grown) else self._nobody

    def _stalled(self, rounding: float) -> Tensor:
        if self._stalest < _PATIENCE:
            return self._nobody
        return (self._stale >= _PATIENCE) & (self.relative <= min(100 * rounding, 0.1))

    def _keep_best(self, z: Tensor, size: Tensor, scale: Tensor, error: Tensor, done: Tensor) -> None:
        better = size < self.residual
        if done is not self._nobody:
            better = better | done
        if self.all_running and all_true(better):
            self.best, self.residual, self._scale, self.error = z, size, scale, error
            if self._stalest > 0:
                self._stale, self._stalest = torch.zeros_like(self._stale), 0
            return
        better = better & self.running
        self.best = rows_from(z, better, self.best)
        self.residual = torch.where(better, size, self.residual)
        self._scale = torch.where(better, scale, self._scale)
        self.error = torch.where(better, error, self.error)
        self._stale = torch.where(better, 0, self._stale + 1)
        self._stalest += 1

    def _code(self, size: Tensor, done: Tensor, stalled: Tensor) -> Tensor:
        code = torch.where(torch.isfinite(size), int(Outcome.DIVERGED), int(Outcome.NON_FINITE))
        code = torch.where(stalled, int(Outcome.STALLED), code)
        return torch.where(done, int(Outcome.CONVERGED), code)

    def _finish(self, now: Tensor, code: Tensor) -> None:
        self.outcome = torch.where(now, code, self.outcome)
        self._seen = torch.where(now, len(self.trace), self._seen)
        self.all_running = False
        self.any_running = any_true(self.running)

    def solution(self) -> EquilibriumSolution:
        """The result, when the loop is over."""
        trace = torch.stack(self.trace)
        evaluations = torch.tensor([0, *self._evaluations], device=self.steps.device)[self._seen]
        rate = _rate(trace, self._seen)
        largest = torch.where(torch.isfinite(trace), trace, 0.0).amax(0)
        overflow = (self.outcome == Outcome.NON_FINITE) & torch.isfinite(trace[0]) & (largest > 1e3 * trace[0])
        outcome = torch.where(overflow, int(Outcome.DIVERGED), self.outcome)  # an overflow after growth
        failed = outcome != Outcome.CONVERGED
        evaluations = evaluations + torch.where(failed, 0, self._crossing.looks)
        unknown = torch.isinf(self.residual)  # no evaluation was finite
        nan = torch.full_like(self.best, torch.nan)
        best = rows_from(nan, unknown, self.best) if any_true(unknown) else self.best
        value = rows_from(nan, failed, best) if any_true(failed) else best
        residual = torch.where(unknown, torch.nan, self.residual)
        relative = torch.where(unknown, torch.nan, self.relative)
        return EquilibriumSolution(
            value, best, outcome, residual, relative, self.error, self.steps, rate, evaluations, trace
        )

    def _why_exhausted(self) -> Tensor:
        """What those who ran to the end of their steps are called."""
        trace = torch.stack(self.trace)
        rate = _rate(trace, torch.full_like(self.steps, len(self.trace)))
        outcome = torch.full_like(self.outcome, int(Outcome.OUT_OF_STEPS))
        if len(self.trace) > 2 * _RATE_WINDOW:
            outcome = torch.where(self._escapes(trace), int(Outcome.NO_EQUILIBRIUM), outcome)
            outcome = torch.where(self._returns(trace), int(Outcome.CYCLE), outcome)
        return torch.where((trace[-1] > 10 * trace[0]) & (rate > 1), int(Outcome.DIVERGED), outcome)

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
        scales = torch.stack(self._scales)
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
