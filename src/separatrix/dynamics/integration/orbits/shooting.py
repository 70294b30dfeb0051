r"""Closing orbits: Newton's method on point and period, for whole batches, and the Floquet multipliers.

Unknowns are a point and a period; the mismatch after one period must vanish in the directions that tokens may move in,
and the point may not slide along the orbit.
"""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...flows.base import AbstractFlow, AbstractSphereFlow
from ...flows.variational import VariationalFlow
from ..variational import state_after
from .closed import Closed, correction, defect, directions, is_find, length

ROUGH, CERTIFIED = 1e-6, 1e-8
"""Relative tolerances of what corrects an orbit at first, and of the derivative that certifies it."""

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
    return Closed(point, period, monodromy, error, residual * scale, mismatch, moved, found, nothing, spent)


def smallest_period(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, " batch"], Int[Tensor, " batch"]]:
    """The period itself, or the fraction of it after which the orbit closes already (up to a fifth); and the cost."""
    shares = torch.tensor([2.0, 3.0, 5.0], dtype=x.dtype, device=x.device).repeat_interleave(len(x))
    every = torch.arange(len(x), device=x.device).repeat(3)
    own = flow.select((len(x),), every)
    later, spent = state_after(own, x[every], period[every] / shares, rtol=1e-8, atol=1e-10)
    length = torch.linalg.vector_norm(flow.velocity(x).flatten(1), dim=-1) * period
    closes = torch.linalg.vector_norm((later - x[every]).flatten(1), dim=-1) < 1e-6 * length[every]
    return period / torch.where(closes, shares, 1.0).reshape(3, -1).prod(dim=0), spent.reshape(3, -1).sum(dim=0)


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
