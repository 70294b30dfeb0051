"""The one loop behind every fixed-point method: evaluate, keep the best, stop per sample, never lose a good sample."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.arrays import require_dense
from separatrix.core.errors import ConvergenceWarning, InvalidInput, NotConverged, ShapeError

from .convergence.columns import Column
from .convergence.progress import Progress
from .convergence.solution import EquilibriumSolution, out_of_units
from .maps.absorbed import absorbed
from .maps.compiled import loops, runs_compiled
from .maps.counted import CountedMap, FixedPointMap
from .maps.stacks import rows_from
from .maps.units import in_units, unusual_units
from .methods.base import AbstractEquilibriumSolver
from .methods.named import find_solver


def find_equilibrium(
    fixed_point_map: FixedPointMap,
    method: AbstractEquilibriumSolver[Any] | str,
    z0: Float[Tensor, "*batch d"],
    *,
    throw: bool = True,
) -> EquilibriumSolution:
    """Solve z = f(z) for every sample of a batch.

    Args:
        fixed_point_map: f, acting on states of the shape of ``z0``; rows must not depend on each other.
        method: a solver with its own tolerances, such as ``Anderson(tol=1e-8)``, or the name of one (``"anderson"``),
            which stands for its defaults; ``solvers()`` has them all.
        z0: where to start, ``(batch, d)`` or any leading batch axes.
        throw: raise ``NotConverged`` if a sample fails; otherwise warn and return the solution with its outcomes.

    Returns:
        The solution; failed samples hold NaN in ``value``. Computed without gradients, in the dtype of ``z0``.

    Raises:
        InvalidInput: ``method`` is not a solver, or ``z0`` is not a floating tensor.
        ShapeError: the map, or a method of your own, does not return the shape it is given.
        NotConverged: a sample failed and ``throw`` is true.

    Cost: one evaluation of the map a step, plus what the method adds; see there. Before convergence is claimed the map
    is looked at beside the state: one to three evaluations for folds, and for slow directions that nothing excites d in
    up to 16 dimensions, in more about log(1000 sqrt(d)) / log(1 / rho) for a map of radius rho, at most 128, and 128
    more where one is suspected. ``stop="residual"`` looks at nothing.

    Example:
        >>> from separatrix.dynamics import Anderson
        >>> solution = find_equilibrium(torch.cos, Anderson(tol=1e-10), torch.zeros(1, 1, dtype=torch.float64))
        >>> round(solution.value.item(), 6)
        0.739085
    """
    solution = solve_quietly(fixed_point_map, method, z0)
    if not solution.ok:
        if throw:
            raise NotConverged(solution.failure_message(), solution)
        warnings.warn(solution.failure_message(), ConvergenceWarning, stacklevel=2)
    return solution


def solve_quietly(
    fixed_point_map: FixedPointMap,
    method: AbstractEquilibriumSolver[Any] | str,
    z0: Float[Tensor, "*batch d"],
    *,
    rounding: float = 0.0,
    survey: bool = True,
    on_step: Callable[[int, Tensor], None] | None = None,
    before_step: Callable[[bool], None] | None = None,
    on_end: Callable[[Tensor], None] | None = None,
    on_hidden: Callable[[], None] | None = None,
) -> EquilibriumSolution:
    """``find_equilibrium`` for callers who look at the outcomes themselves: it neither raises nor warns.

    Args:
        fixed_point_map: as there.
        method: as there.
        z0: as there.
        rounding: relative rounding error of the map where it is coarser than what its dtypes show.
        survey: whether, in more than 16 dimensions, slow directions are looked for that nothing excites.
        on_step: is shown the number of every step, from one, and its states (batch, d).
        before_step: is told, before the map is evaluated for a step, whether it may well be the last one, and no after
            that: other evaluations follow which are none.
        on_end: is shown the images (batch, d) of the best iterates, as far as the last step knows them: of the others,
            none of which converged, the best iterates themselves. Not called for an empty batch.
        on_hidden: is called at the end if the search for slow directions refused a claim.
    """
    solver = find_solver(method)
    require_dense(z0, "z0")
    if not isinstance(z0, Tensor) or not z0.is_floating_point() or z0.ndim < 1:
        raise InvalidInput(f"z0 must be a floating tensor (batch, d); got {_described(z0)}.")
    # remembers the autocast that is switched off next
    counted = CountedMap(fixed_point_map, z0.shape, z0.dtype, rounding=rounding)
    with torch.no_grad(), _without_autocast(z0.device.type):
        start = z0.detach().clone().reshape(-1, z0.shape[-1])
        # least squares in half precision would not converge
        solution = _solve(
            counted,
            solver,
            start.to(torch.promote_types(z0.dtype, torch.float32)),
            survey,
            on_step,
            before_step,
            on_end,
            on_hidden,
        )
    return _with_batch_shape(solution, z0)


def _without_autocast(device: str) -> contextlib.AbstractContextManager[object]:
    """Autocast switched off, if it is on: the context costs more than the question."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else contextlib.nullcontext()


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__


def _solve(
    fixed_point_map: CountedMap,
    method: AbstractEquilibriumSolver[Any],
    z: Tensor,
    survey: bool,
    on_step: Callable[[int, Tensor], None] | None,
    before_step: Callable[[bool], None] | None,
    on_end: Callable[[Tensor], None] | None,
    on_hidden: Callable[[], None] | None,
) -> EquilibriumSolution:
    progress = Progress(method, z, fixed_point_map, survey=survey)
    if z.shape[0] == 0:
        progress.trace.append(progress.residual)
        return progress.solution()
    if transforms_active():
        z = _mapped_like(z, fixed_point_map(z))
    history = method.begin(fixed_point_map, z)
    for step in itertools.count(1):
        if before_step is not None and progress.any_near:
            before_step(True)
        f = fixed_point_map(z).detach()  # forward-mode tangents too stop here
        if before_step is not None and progress.any_near:
            before_step(False)
        slots = method.slots(history) or method.residual_buffer(history)
        residual, size, scale = absorbed(z, f, slots, progress.host)
        if step == 1 and _has_no_unit(method) and not transforms_active():
            unit = unusual_units(z, f, torch.as_tensor(size), torch.as_tensor(scale))
            if unit is not None:
                return _solved_in_units(fixed_point_map, method, z, unit, survey, on_step, on_end, on_hidden)
        progress.note(z, f, residual, size, scale, fixed_point_map)
        if on_step is not None:
            on_step(step, z)
        if not progress.any_running:
            if not progress.examine(residual, fixed_point_map):
                break
            history = method.begin(fixed_point_map, z)  # those refused go on from where they rest
            continue
        proposal = _like(z, method.propose(history, z, f, residual), method)
        # a finished sample rests where it is
        z = proposal if progress.all_running else _rested(proposal, progress.running, z)
    if on_end is not None:
        on_end(progress.images(f))
    if on_hidden is not None and progress.hidden:
        on_hidden()
    return progress.solution()


def _has_no_unit(method: AbstractEquilibriumSolver[Any]) -> bool:
    """Whether its tolerance has the unit of the states, whatever that is."""
    return method.stop == "rel" and not method.atol


def _solved_in_units(
    fixed_point_map: CountedMap,
    method: AbstractEquilibriumSolver[Any],
    z: Tensor,
    unit: Tensor,
    survey: bool,
    on_step: Callable[[int, Tensor], None] | None,
    on_end: Callable[[Tensor], None] | None,
    on_hidden: Callable[[], None] | None,
) -> EquilibriumSolution:
    """The solve of states whose squares are no numbers."""
    scaled = in_units(fixed_point_map, unit, z)
    scaled.evaluations = fixed_point_map.evaluations
    if on_step is not None:
        shown = on_step
        on_step = lambda step, w: shown(step, w * unit)  # noqa: E731
    if on_end is not None:
        ended = on_end
        on_end = lambda w: ended(w * unit)  # noqa: E731
    # in units of their own the default absolute tolerance of large states would be large
    least = 1e-2 * method.tolerance(scaled.rounding) / max(float(unit.max()), 1.0)
    method = dataclasses.replace(method, atol=least) if float(unit.max()) > 1 else method
    return out_of_units(_solve(scaled, method, z / unit, survey, on_step, None, on_end, on_hidden), unit)


def _like(z: Tensor, proposal: Any, method: AbstractEquilibriumSolver[Any]) -> Tensor:
    if isinstance(proposal, Tensor) and proposal.shape == z.shape and proposal.dtype == z.dtype:
        return proposal
    raise ShapeError(
        f"{type(method).__name__}.propose must return {_described(z)}; it returned {_described(proposal)}."
    )


def _rested(proposal: Tensor, running: Column, z: Tensor) -> Tensor:
    if isinstance(running, Tensor):
        return rows_from(proposal, running, z)
    if not runs_compiled(z):
        out, at_rest = proposal.clone(), (~running).nonzero()[0]
        out.numpy()[at_rest] = z.numpy()[at_rest]
        return out
    out = torch.empty_like(z)
    loops().rest(proposal.contiguous().numpy(), running, z.contiguous().numpy(), out.numpy())
    return out


def _mapped_like(z: Tensor, f: Tensor) -> Tensor:
    """z with the mapped axes of f: what is remembered in place must have them from the start."""
    return torch.where(torch.zeros_like(f, dtype=torch.bool), f, z)


def _with_batch_shape(solution: EquilibriumSolution, z0: Tensor) -> EquilibriumSolution:
    shape, batch = z0.shape, z0.shape[:-1]
    if solution.value.dtype != z0.dtype:
        solution = dataclasses.replace(solution, value=solution.value.to(z0.dtype), best=solution.best.to(z0.dtype))
    if len(batch) == 1:
        return solution
    return dataclasses.replace(
        solution,
        value=solution.value.reshape(shape),
        best=solution.best.reshape(shape),
        trace=solution.trace.reshape(solution.trace.shape[0], *batch),
        **{
            name: getattr(solution, name).reshape(batch)
            for name in ("outcome", "residual", "relative", "error", "steps", "rate", "evaluations", "surveyed")
        },
    )
