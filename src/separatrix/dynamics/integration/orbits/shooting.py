r"""Closing orbits: Newton's method on point and period, for whole batches, and the Floquet multipliers.

Unknowns are a point and a period; the mismatch after one period must vanish in the directions that tokens may move in,
and the point may not slide along the orbit.
"""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Outcome

from ...flows.base import AbstractFlow, AbstractSphereFlow
from ...flows.variational import VariationalFlow
from ..driver import Run
from ..methods.control import ScaledControl
from ..methods.rosenbrock import Rosenbrock
from ..plan import Plan
from ..stopping import Until
from ..variational import state_after
from .closed import Closed, correction, defect, directions, is_find, length

ROUGH, CERTIFIED = 1e-6, 1e-8
"""Relative tolerances of what corrects an orbit at first, and of the derivative that certifies it."""

STIFF_TOLERANCE, STIFF_STEPS, STIFF_CLOSED = 1e-7, 6000, 1e-5
"""Of stiff motions around: relative tolerance, steps at most, and mismatch, over the state, of an orbit that closes."""

NEIGHBOUR = 1e-4
"""Distance of the neighbours that differences are taken of, over the size of the state."""

SLOW = 0.1
"""A correction that leaves more than this share of the mismatch asks for a new derivative."""


def shoot(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    period: Float[Tensor, " batch"],
    *,
    max_steps: int = 16,
    tol: float = 1e-9,
) -> Closed:
    """The closed orbit near each state.

    Args:
        flow: the flow of these elements, constant in time.
        x: states close to their orbits.
        period: guesses of the periods.
        max_steps: Newton steps.
        tol: length of the mismatch after one period, relative to the length of the state.

    Cost: usually two integrations over a period with n e tangent vectors, e the dimension of a token's space, the
    first of them rough, and an integration without them per Newton step.
    """
    closed = _shoot(flow, x, period, max_steps, tol)
    some = closed.found.nonzero().squeeze(-1)
    if not len(some):
        return closed
    own = flow.select((len(x),), some)
    shorter, spent = smallest_period(own, closed.point[some], closed.period[some])
    closed.evaluations[some] += spent
    again = shorter < 0.9 * closed.period[some]
    if not bool(again.any()):
        return closed
    guess = closed.period.clone()
    guess[some] = shorter
    start = torch.where(closed.found[:, None, None], closed.point, x)
    better = _shoot(flow, start, guess.nan_to_num(nan=1.0), 4, tol)
    return dataclasses.replace(better, evaluations=closed.evaluations + better.evaluations)


def _shoot(flow: AbstractFlow, x: Tensor, period: Tensor, max_steps: int, tol: float) -> Closed:
    """Newton's method with a derivative that is kept while it serves: going around without tangents costs little."""
    count = x.shape[1] * flow.basis(x).shape[-1]
    monodromy = x.new_full((len(x), count, count), torch.nan)
    residual, before = x.new_full((len(x),), torch.inf), x.new_full((len(x),), torch.inf)
    stale = torch.ones(len(x), dtype=torch.bool, device=x.device)
    mismatch, rough, spent = residual.clone(), monodromy.clone(), torch.zeros_like(stale, dtype=torch.int64)
    point, period, going = x.clone(), period.clone(), torch.arange(len(x), device=x.device)
    first, scale = length(flow, x, period), torch.linalg.vector_norm(x.flatten(1), dim=-1).clamp_min(1e-280)
    for step in range(max_steps):
        own = flow.select((len(x),), going)
        rtol = 1e-10 if step else ROUGH
        end, cost = state_after(own, point[going], period[going], rtol=rtol, atol=1e-2 * rtol)
        spent[going] += cost
        residual[going] = torch.linalg.vector_norm((end - point[going]).flatten(1), dim=-1) / scale[going]
        mismatch = residual * scale if step == 0 else mismatch
        wanted = torch.isfinite(residual[going]) & ((residual[going] >= tol) | (step == 0))
        slow = residual[going] > SLOW * before[going]
        fresh = (wanted & (stale[going] | slow)).nonzero().squeeze(-1)
        if len(fresh):
            at = going[fresh]
            rough[at], cost = _around(own.select((len(going),), fresh), point[at], period[at], ROUGH)
            spent[at] += cost
            stale[at] = False
        if not bool(wanted.any()):
            break
        before[going] = residual[going]
        at, last = going[wanted], end[wanted]
        here = own.select((len(going),), wanted.nonzero().squeeze(-1))
        turn, change, _ = correction(here, point[at], last, here.velocity(last), rough[at], period[at], 0.1 * ROUGH)
        point[at], period[at] = here.project(point[at] + turn), period[at] + change
        going = at[torch.isfinite(period[at]) & (period[at] > 0)]
        if not len(going):
            break
    found = (residual < tol) & is_find(flow, x, first, point, period)
    error, some = torch.full_like(period, torch.inf), found.nonzero().squeeze(-1)
    if len(some):
        own = flow.select((len(x),), some)
        monodromy[some], cost = _around(own, point[some], period[some], CERTIFIED)
        spent[some] += cost
        size = torch.linalg.matrix_norm(monodromy[some]).clamp_min(1.0)
        error[some] = torch.maximum(defect(own, point[some], monodromy[some]), 10 * CERTIFIED * size)
    moved = torch.linalg.vector_norm((point - x).flatten(1), dim=-1)
    point, period = torch.where(found[:, None, None], point, torch.nan), torch.where(found, period, torch.nan)
    nothing = torch.zeros_like(found)
    return Closed(point, period, monodromy, error, residual * scale, mismatch, moved, found, nothing, spent, nothing)


def shoot_stiff(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"], *, max_steps: int = 4
) -> Closed:
    """The closed orbit near each state, where jumps are short against everything else.

    There a mesh must know the times of the jumps before Newton's method converges on it, but the motion itself forgets
    where it came from. Derivatives are differences between neighbours that an implicit method carries around. They are
    known to a part in a hundred or thousand, which is enough to certify an orbit that attracts strongly; what is known
    of the error is by how much they fail to keep the velocity.

    Cost: one integration over a period, of 1 + n e states together, for each of two or three Newton steps.
    """
    count, every = len(x), directions(flow, x)
    k = every.shape[1]
    monodromy, spent = x.new_full((count, k, k), torch.nan), torch.zeros(count, dtype=torch.int64, device=x.device)
    point, period, first = x.clone(), period.clone(), length(flow, x, period)
    unit = torch.minimum(first, x.flatten(1).abs().amax(dim=-1)).clamp_min(1e-280)  # a jump is fast, and short
    residual, mismatch = torch.full_like(period, torch.inf), torch.full_like(period, torch.nan)
    going = torch.arange(count, device=x.device)
    for step in range(max_steps):
        own = flow.select((count,), going)
        end, matrix, cost = _around_by_differences(own, point[going], period[going], unit[going])
        spent[going] += cost
        before = residual[going]
        residual[going] = torch.linalg.vector_norm((end - point[going]).flatten(1), dim=-1)
        mismatch = residual.clone() if step == 0 else mismatch
        monodromy[going] = matrix
        wanted = residual[going] >= STIFF_CLOSED * unit[going]
        on = torch.isfinite(residual[going]) & wanted & (residual[going] < before)
        if not bool(on.any()) or step == max_steps - 1:
            break
        at = on.nonzero().squeeze(-1)
        here, last = own.select((len(going),), at), end[at]
        going = going[at]
        turn, change, _ = correction(
            here, point[going], last, here.velocity(last), matrix[at], period[going], NEIGHBOUR
        )
        point[going], period[going] = here.project(point[going] + turn), period[going] + change
    found = (residual < STIFF_CLOSED * unit) & is_find(flow, x, first, point, period)
    size = torch.linalg.matrix_norm(monodromy).clamp_min(1.0)
    error = torch.maximum(10 * NEIGHBOUR * size, defect(flow, point, monodromy).nan_to_num(nan=torch.inf))
    moved = torch.linalg.vector_norm((point - x).flatten(1), dim=-1)
    point, period = torch.where(found[:, None, None], point, torch.nan), torch.where(found, period, torch.nan)
    nothing = torch.zeros_like(found)
    return Closed(point, period, monodromy, error, residual, mismatch, moved, found, nothing, spent, ~nothing)


def _around_by_differences(
    flow: AbstractFlow, x: Tensor, period: Tensor, unit: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, "batch n d"], Float[Tensor, "batch k k"], Int[Tensor, " batch"]]:
    """State one period later, its derivative in tangent coordinates, and the cost; ``unit`` is a length."""
    every = directions(flow, x)
    count, k = every.shape[:2]
    shift = (NEIGHBOUR * unit)[:, None, None, None] * every
    starts = torch.cat([x.unsqueeze(1), flow.project((x.unsqueeze(1) + shift).transpose(0, 1)).transpose(0, 1)], dim=1)
    own = flow.select((count,), torch.arange(count, device=x.device).repeat_interleave(1 + k))
    control = ScaledControl(STIFF_TOLERANCE, 1e-2 * STIFF_TOLERANCE)
    plan = Plan(Rosenbrock(), control, Until(), STIFF_STEPS, own_length=True)
    run = Run(own, (len(starts) * (1 + k),), starts.flatten(0, 1), plan, period.repeat_interleave(1 + k), None)
    run.run()
    reached = (run.books.outcome == Outcome.COMPLETED)[:, None, None]
    ends = torch.where(reached, run.books.final, torch.nan).unflatten(0, (count, 1 + k))
    moved = (ends[:, 1:] - ends[:, :1]) / (NEIGHBOUR * unit)[:, None, None, None]
    matrix = torch.einsum("bknd,blnd->bkl", every, moved)
    return ends[:, 0], matrix, run.books.evaluations.unflatten(0, (count, 1 + k)).sum(dim=1)


def smallest_period(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, " batch"], Int[Tensor, " batch"]]:
    """The period itself, or the fraction of it after which the orbit closes already (up to a fifth); and the cost."""
    length = torch.linalg.vector_norm(flow.velocity(x).flatten(1), dim=-1) * period
    shares = torch.tensor([2.0, 3.0, 5.0], dtype=x.dtype, device=x.device).repeat_interleave(len(x))
    every = torch.arange(len(x), device=x.device).repeat(3)
    closes, total = torch.ones_like(every, dtype=torch.bool), torch.zeros_like(every)
    for rtol, miss in ((1e-4, 1e-2), (1e-8, 1e-6)):  # roughly first: hardly any does
        at = closes.nonzero().squeeze(-1)
        if not len(at):
            break
        own = flow.select((len(x),), every[at])
        later, spent = state_after(own, x[every[at]], (period[every] / shares)[at], rtol=rtol, atol=1e-2 * rtol)
        total[at] += spent
        closes[at] = torch.linalg.vector_norm((later - x[every[at]]).flatten(1), dim=-1) < miss * length[every[at]]
    return period / torch.where(closes, shares, 1.0).reshape(3, -1).prod(dim=0), total.reshape(3, -1).sum(dim=0)


def _around(
    flow: AbstractFlow, x: Tensor, period: Tensor, rtol: float
) -> tuple[Float[Tensor, "batch k k"], Int[Tensor, " batch"]]:
    """Derivative of the state one period later, compressed to the directions at the start; and the cost."""
    every = directions(flow, x)
    variational = VariationalFlow(flow, every.shape[1])
    end, velocities = state_after(variational, variational.pack(x, every), period, rtol=rtol, atol=1e-2 * rtol)
    return torch.einsum("bknd,blnd->bkl", every, variational.unpack(end)[1]), velocities * (1 + every.shape[1])


def parting_maps(
    flow: AbstractSphereFlow, w: Float[Tensor, "batch m d"], period: Float[Tensor, " batch"]
) -> Float[Tensor, "batch m d d"]:
    """What one period makes of the halves of each cluster that part, in coordinates of the whole space."""
    assert flow.sizes is not None
    halves = flow.with_sizes(torch.cat([flow.sizes, flow.sizes], dim=-1) / 2)
    basis = flow.basis(w)
    parting = basis.movedim(-1, 1)
    variational = VariationalFlow(halves, parting.shape[1])
    start = variational.pack(torch.cat([w, w], dim=-2), torch.cat([parting, -parting], dim=-2))
    end, _ = state_after(variational, start, period, rtol=CERTIFIED, atol=1e-2 * CERTIFIED)
    moved = variational.unpack(end)[1][..., : w.shape[1], :]
    return torch.einsum("bfmd,bmcf->bmdc", moved, basis)
