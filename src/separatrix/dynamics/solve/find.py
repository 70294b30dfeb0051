"""The one loop behind every fixed-point method: evaluate, keep the best, stop per sample, never lose a good sample."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core.errors import ConvergenceWarning, InvalidInput, NotConverged
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result

from .base import AbstractEquilibriumSolver, FixedPointMap


@final
@dataclasses.dataclass(frozen=True, repr=False)
class EquilibriumSolution(Result):
    """What a fixed-point solve found, per sample.

    ``residual`` is |f(z) - z| at ``best``, and ``relative`` the same over |f(z)|: what you would compute yourself.
    """

    value: Float[Tensor, "*batch d"]
    """The equilibrium; NaN where the solve failed."""
    best: Float[Tensor, "*batch d"]
    """The iterate with the smallest residual, also where the solve failed."""
    outcome: Int[Tensor, " *batch"]
    residual: Float[Tensor, " *batch"]
    relative: Float[Tensor, " *batch"]
    steps: Int[Tensor, " *batch"]
    """Evaluations of the map until this sample was finished."""
    rate: Float[Tensor, " *batch"]
    """Observed contraction per step, the geometric mean over the last steps; above one means divergence."""
    evaluations: int
    """Evaluations of the map on the whole batch."""

    @property
    def ok(self) -> bool:
        """True if every sample converged."""
        return bool((self.outcome == Outcome.CONVERGED).all())

    @property
    def n_failed(self) -> int:
        """How many samples did not converge."""
        return int((self.outcome != Outcome.CONVERGED).sum())

    def outcomes(self) -> list[Outcome]:
        """The outcome of each sample as an enumeration member."""
        return [Outcome(code) for code in self.outcome.flatten().tolist()]

    def unwrap(self) -> Tensor:
        """The equilibria, or ``NotConverged`` carrying this solution."""
        if not self.ok:
            raise NotConverged(self.failure_message(), self)
        return self.value

    def failure_message(self) -> str:
        """One sentence on what failed and what to try."""
        failed = self.outcome != Outcome.CONVERGED
        kinds = sorted({Outcome(code) for code in self.outcome[failed].flatten().tolist()})
        names = ", ".join(kind.label for kind in kinds)
        worst = float(self.residual[failed].nan_to_num(float("inf")).max())
        return (
            f"{self.n_failed} of {self.outcome.numel()} solves did not converge ({names}; largest residual {worst:.1e} "
            f"after {int(self.steps.max())} steps). {kinds[-1].advice}"
        )


def find_equilibrium(
    fixed_point_map: FixedPointMap,
    method: AbstractEquilibriumSolver[Any],
    z0: Float[Tensor, "*batch d"],
    *,
    throw: bool = True,
) -> EquilibriumSolution:
    """Solve z = f(z) for every sample of a batch.

    Args:
        fixed_point_map: f, acting on states of the shape of ``z0``; rows must not depend on each other.
        method: ``Picard()``, ``Anderson()``, ``Broyden()`` or ``NewtonKrylov()`` with its own tolerances.
        z0: where to start, ``(batch, d)`` or any leading batch axes.
        throw: raise ``NotConverged`` if a sample fails; otherwise warn and return the solution with its outcomes.

    Returns:
        The solution; failed samples hold NaN in ``value``. Computed without gradients, in the dtype of ``z0``.

    Example:
        >>> solution = find_equilibrium(torch.cos, Anderson(tol=1e-10), torch.zeros(1, 1, dtype=torch.float64))
        >>> round(solution.value.item(), 6)
        0.739085
    """
    _check_arguments(method, z0)
    shape = z0.shape

    def flat_map(z: Tensor) -> Tensor:
        return fixed_point_map(z.view(shape)).reshape(z.shape)

    with torch.no_grad():
        solution = _solve(flat_map, method, z0.detach().reshape(-1, shape[-1]))
    solution = _with_batch_shape(solution, shape)
    if not solution.ok:
        if throw:
            raise NotConverged(solution.failure_message(), solution)
        warnings.warn(solution.failure_message(), ConvergenceWarning, stacklevel=2)
    return solution


def _check_arguments(method: Any, z0: Any) -> None:
    if not isinstance(method, AbstractEquilibriumSolver):
        raise InvalidInput(f"method must be a solver such as Anderson(); got {method!r}.")
    if not isinstance(z0, Tensor) or not z0.is_floating_point() or z0.ndim < 1:
        raise InvalidInput("z0 must be a floating tensor (batch, d).")


@dataclasses.dataclass
class _Progress:
    """Per-sample bookkeeping of the loop."""

    best: Tensor
    residual: Tensor
    relative: Tensor
    first: Tensor
    outcome: Tensor
    steps: Tensor
    trace: list[Tensor]


_RUNNING = -1


def _solve(fixed_point_map: FixedPointMap, method: AbstractEquilibriumSolver[Any], z: Tensor) -> EquilibriumSolution:
    history = method.begin(fixed_point_map, z)
    progress: _Progress | None = None
    evaluations = 0
    while evaluations < method.max_steps and z.shape[0] > 0:
        f = fixed_point_map(z)
        evaluations += 1
        residual = f - z
        progress = _update(progress, method, z, f, residual, evaluations)
        running = progress.outcome == _RUNNING
        if not bool(running.any()):
            break
        if evaluations < method.max_steps:
            proposal = method.propose(history, z, f, residual)
            # a finished sample rests where it is; selecting, not multiplying, keeps its NaN to itself
            z = torch.where(running.unsqueeze(-1), proposal, z)
    return _finished(progress, z, evaluations)


def _update(
    progress: _Progress | None,
    method: AbstractEquilibriumSolver[Any],
    z: Tensor,
    f: Tensor,
    residual: Tensor,
    step: int,
) -> _Progress:
    size = residual.norm(dim=-1)
    relative = size / f.norm(dim=-1).clamp_min(torch.finfo(z.dtype).tiny)
    measure = relative if method.stop == "rel" else size
    if progress is None:
        progress = _Progress(
            z, torch.full_like(size, torch.inf), torch.full_like(size, torch.inf), size,
            torch.full_like(size, _RUNNING, dtype=torch.int64), torch.zeros_like(size, dtype=torch.int64), [],
        )  # fmt: skip
        progress.best = torch.where(torch.isfinite(size).unsqueeze(-1), z, torch.nan)
    running = progress.outcome == _RUNNING
    better = running & (size < progress.residual)
    progress.best = torch.where(better.unsqueeze(-1), z, progress.best)
    progress.residual = torch.where(better, size, progress.residual)
    progress.relative = torch.where(better, relative, progress.relative)
    progress.steps += running
    progress.trace.append(size)
    code = torch.where(measure <= method.tol, int(Outcome.CONVERGED), _RUNNING)
    code = torch.where(size > method.divergence * progress.first, int(Outcome.DIVERGED), code)
    code = torch.where(torch.isfinite(size), code, int(Outcome.NON_FINITE))
    progress.outcome = torch.where(running, code, progress.outcome)
    return progress


def _finished(progress: _Progress | None, z: Tensor, evaluations: int) -> EquilibriumSolution:
    if progress is None:  # an empty batch
        none = z.new_zeros(z.shape[0])
        return EquilibriumSolution(z, z, none.long(), none, none, none.long(), none, 0)
    out_of_steps = _out_of_steps(progress)
    outcome = torch.where(progress.outcome == _RUNNING, out_of_steps, progress.outcome)
    overflow = (outcome == Outcome.NON_FINITE) & torch.isfinite(progress.first) & _was_growing(progress.trace)
    outcome = torch.where(overflow, int(Outcome.DIVERGED), outcome)
    failed = outcome != Outcome.CONVERGED
    residual = torch.where(torch.isfinite(progress.residual), progress.residual, torch.nan)
    relative = torch.where(torch.isfinite(progress.relative), progress.relative, torch.nan)
    value = torch.where(failed.unsqueeze(-1), torch.nan, progress.best)
    return EquilibriumSolution(
        value, progress.best, outcome, residual, relative, progress.steps, _rate(progress), evaluations
    )


def _out_of_steps(progress: _Progress) -> Tensor:
    """A sample that ran to the end has diverged if its residual is far above its first, else it needs more steps."""
    grown = progress.trace[-1] > 1e3 * progress.first
    return torch.where(grown, int(Outcome.DIVERGED), int(Outcome.OUT_OF_STEPS))


def _was_growing(trace: Sequence[Tensor]) -> Tensor:
    """Whether the last finite residual exceeds the first by far: an overflow, not a bad input."""
    first = trace[0]
    last_finite = first
    for size in trace[1:]:
        last_finite = torch.where(torch.isfinite(size), size, last_finite)
    return last_finite > 1e3 * first


def _rate(progress: _Progress, window: int = 8) -> Tensor:
    """Geometric mean of the last ratios of residuals of each sample, up to the step at which it finished."""
    sizes = torch.stack(progress.trace)  # (time, batch)
    last = (progress.steps - 1).clamp(0, len(progress.trace) - 1)
    start = (last - window).clamp_min(0)
    n_ratios = (last - start).clamp_min(1)
    pick = torch.arange(sizes.shape[1], device=sizes.device)
    ratio = sizes[last, pick] / sizes[start, pick]
    return torch.where(last > start, ratio ** (1 / n_ratios), torch.nan)


def _with_batch_shape(solution: EquilibriumSolution, shape: torch.Size) -> EquilibriumSolution:
    batch = shape[:-1]
    return dataclasses.replace(
        solution,
        value=solution.value.reshape(shape),
        best=solution.best.reshape(shape),
        **{
            name: getattr(solution, name).reshape(batch)
            for name in ("outcome", "residual", "relative", "steps", "rate")
        },
    )
