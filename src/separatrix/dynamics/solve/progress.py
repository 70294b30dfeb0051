"""Per-sample bookkeeping of a solve: the best iterate, who is finished and why.

Everything is done with selections of rows, never with products by a mask: zero times NaN is NaN, and one bad sample
would poison the good ones. The steps at which nothing happens to any sample cost two norms and a few comparisons.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from separatrix.core.outcome import Outcome
from separatrix.core.transforms import all_true, any_true

from .base import AbstractEquilibriumSolver, States
from .solution import EquilibriumSolution
from .stacks import rows_from

_RUNNING = -1
_RATE_WINDOW = 8
_PATIENCE = 10
"""Steps without a better residual, near rounding, after which a sample has stalled."""


@final
class Progress:
    """How far each sample of a solve has come."""

    def __init__(self, method: AbstractEquilibriumSolver[object], z: States) -> None:
        batch = z.shape[0]
        self.method = method
        self.best = z
        self.residual = torch.full((batch,), torch.inf, dtype=z.dtype, device=z.device)
        self.relative = self.residual
        self.outcome = torch.full((batch,), _RUNNING, device=z.device)
        self.steps = torch.zeros(batch, dtype=torch.int64, device=z.device)
        self._evaluations: list[int] = []
        self.all_running = True
        self.any_running = batch > 0
        self.trace: list[Tensor] = []
        self._stale = torch.zeros(batch, dtype=torch.int64, device=z.device)
        self._limit = self.residual
        self._floor = min(100 * torch.finfo(z.dtype).eps, 0.1)
        # otherwise whoever comes so close has converged
        self._may_stall = method.stop == "abs" or method.tol < self._floor

    @property
    def running(self) -> Tensor:
        """Mask of the samples that are not finished."""
        return self.outcome == _RUNNING

    def note(self, z: States, f: States, residual: States, evaluations: int) -> None:
        """Take in one step: update the best iterates and decide who is finished, after so many evaluations."""
        self._evaluations.append(evaluations)
        size = torch.linalg.vector_norm(residual, dim=-1)
        relative = size / torch.linalg.vector_norm(f, dim=-1).clamp_min(torch.finfo(z.dtype).tiny)
        if not self.trace:
            self._limit = self.method.divergence * size
        self.trace.append(size)
        done = (relative if self.method.stop == "rel" else size) <= self.method.tol
        self._keep_best(z, size, relative, done)
        finished = done | ~(size <= self._limit)  # too large, or NaN
        stalled = (self._stale >= _PATIENCE) & (self.relative <= self._floor) if self._may_stall else None
        if stalled is not None:
            finished |= stalled
        if not self.all_running:
            finished &= self.running
        if any_true(finished):
            self._finish(finished, size, done, stalled)

    def _keep_best(self, z: Tensor, size: Tensor, relative: Tensor, done: Tensor) -> None:
        better = (size < self.residual) | done
        settled = better
        if not self.all_running:
            settled = better | (self.outcome == int(Outcome.CONVERGED))  # their rows of z are their best rows
        if all_true(settled):
            self.best, self.residual, self.relative = z, size, relative
            if self._may_stall:
                self._stale.zero_()
            return
        better = better & self.running
        self.best = rows_from(z, better, self.best)
        self.residual = torch.where(better, size, self.residual)
        self.relative = torch.where(better, relative, self.relative)
        self._stale = torch.where(better, 0, self._stale + 1)

    def _finish(self, now: Tensor, size: Tensor, done: Tensor, stalled: Tensor | None) -> None:
        code = torch.where(torch.isfinite(size), int(Outcome.DIVERGED), int(Outcome.NON_FINITE))
        if stalled is not None:
            code = torch.where(stalled, int(Outcome.STALLED), code)
        code = torch.where(done, int(Outcome.CONVERGED), code)
        self.outcome = torch.where(now, code, self.outcome)
        self.steps = torch.where(now, len(self.trace), self.steps)
        self.all_running = False
        self.any_running = any_true(self.running)

    def solution(self) -> EquilibriumSolution:
        """The result, when the loop is over."""
        trace = torch.stack(self.trace)
        steps = torch.where(self.running, len(self.trace), self.steps)
        evaluations = torch.tensor([0, *self._evaluations], device=steps.device)[steps]
        rate = _rate(trace, steps)
        outcome = self._final_outcome(trace, rate)
        failed = outcome != Outcome.CONVERGED
        unknown = torch.isinf(self.residual)  # no evaluation was finite
        nan = torch.full_like(self.best, torch.nan)
        best = rows_from(nan, unknown, self.best) if any_true(unknown) else self.best
        value = rows_from(nan, failed, best) if any_true(failed) else best
        residual = torch.where(unknown, torch.nan, self.residual)
        relative = torch.where(unknown, torch.nan, self.relative)
        return EquilibriumSolution(value, best, outcome, residual, relative, steps, rate, evaluations, trace)

    def _final_outcome(self, trace: Tensor, rate: Tensor) -> Tensor:
        """Who ran to the end needs more steps, unless the residual grew; an overflow after growth is a divergence."""
        first = trace[0]
        growing = (trace[-1] > 10 * first) & (rate > 1)
        outcome = torch.where(self.running & growing, int(Outcome.DIVERGED), self.outcome)
        outcome = torch.where(outcome == _RUNNING, int(Outcome.OUT_OF_STEPS), outcome)
        largest = torch.where(torch.isfinite(trace), trace, 0.0).amax(0)
        overflow = (outcome == Outcome.NON_FINITE) & torch.isfinite(first) & (largest > 1e3 * first)
        return torch.where(overflow, int(Outcome.DIVERGED), outcome)


def _rate(trace: Tensor, steps: Tensor) -> Tensor:
    """Geometric mean of the last ratios of residuals of each sample, up to the step at which it finished."""
    last = (steps - 1).clamp_min(0)
    start = (last - _RATE_WINDOW).clamp_min(0)
    pick = torch.arange(trace.shape[1], device=trace.device)
    ratio = trace[last, pick] / trace[start, pick]
    return torch.where(last > start, ratio ** (1 / (last - start).clamp_min(1)), torch.nan)
