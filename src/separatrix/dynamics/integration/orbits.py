r"""Closing orbits: Newton's method on point and period, for whole batches, and the Floquet multipliers.

Unknowns are a point and a period; the mismatch after one period must vanish in the directions that tokens may move in,
and the point may not slide along the orbit.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Complex, Float
from torch import Tensor

from ..equilibria.clusters import by_count, cluster_means, find_clusters
from ..flows.base import AbstractFlow, AbstractSphereFlow
from ..flows.variational import VariationalFlow
from .driver import state_after
from .floquet import Floquet

TOGETHER = 0.05
"""Tokens closer than this are taken to move together; the transversal multipliers say whether they do."""

WANDER = 0.2
"""An orbit further from the state than this share of its length is another one."""

ROUGH, CERTIFIED = 1e-6, 1e-8
"""Relative tolerances of what corrects an orbit at first, and of the derivative that certifies it."""

SLOW = 0.1
"""A correction that leaves more than this share of the mismatch asks for a new derivative."""

LARGEST_ORBIT = 200
"""Unknowns of a shooting problem that is attempted while a trajectory is followed."""


@final
@dataclasses.dataclass(frozen=True)
class Closed:
    """Closed orbits through ``point``; NaN where none was found. ``monodromy`` is in tangent coordinates there."""

    point: Float[Tensor, "batch n d"]
    period: Float[Tensor, " batch"]
    monodromy: Float[Tensor, "batch k k"]
    residual: Float[Tensor, " batch"]
    found: Bool[Tensor, " batch"]


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
    shorter = smallest_period(own, closed.point[some], closed.period[some])
    again = shorter < 0.9 * closed.period[some]
    if not bool(again.any()):
        return closed
    guess = closed.period.clone()
    guess[some] = shorter
    return _shoot(flow, torch.where(closed.found[:, None, None], closed.point, x), guess.nan_to_num(nan=1.0), 4, tol)


def _shoot(flow: AbstractFlow, x: Tensor, period: Tensor, max_steps: int, tol: float) -> Closed:
    """Newton's method with a derivative that is kept while it serves: going around without tangents costs little."""
    count = x.shape[1] * flow.basis(x).shape[-1]
    monodromy = x.new_full((len(x), count, count), torch.nan)
    residual, before = x.new_full((len(x),), torch.inf), x.new_full((len(x),), torch.inf)
    stale = torch.ones(len(x), dtype=torch.bool, device=x.device)
    point, period, going = x.clone(), period.clone(), torch.arange(len(x), device=x.device)
    first = torch.linalg.vector_norm(flow.velocity(x).flatten(1), dim=-1) * period
    scale = torch.linalg.vector_norm(x.flatten(1), dim=-1).clamp_min(1e-280)
    for step in range(max_steps):
        own = flow.select((len(x),), going)
        rtol = 1e-10 if step else ROUGH
        end = state_after(own, point[going], period[going], rtol=rtol, atol=1e-2 * rtol)
        residual[going] = torch.linalg.vector_norm((end - point[going]).flatten(1), dim=-1) / scale[going]
        wanted = torch.isfinite(residual[going]) & ((residual[going] >= tol) | (step == 0))
        slow = residual[going] > SLOW * before[going]
        fresh = (wanted & (stale[going] | slow)).nonzero().squeeze(-1)
        if len(fresh):
            at = going[fresh]
            monodromy[at] = _around(own.select((len(going),), fresh), point[at], period[at], ROUGH)
            stale[at] = False
        if not bool(wanted.any()):
            break
        before[going] = residual[going]
        at = going[wanted]
        point[at], period[at] = _corrected(
            own.select((len(going),), wanted.nonzero().squeeze(-1)), point[at], period[at], end[wanted], monodromy[at]
        )
        going = at[torch.isfinite(period[at]) & (period[at] > 0)]
        if not len(going):
            break
    moving = torch.linalg.vector_norm(flow.velocity(point).flatten(1), dim=-1) * period
    wandered = torch.linalg.vector_norm((point - x).flatten(1), dim=-1) > WANDER * first
    # An equilibrium closes after any time.
    found = (residual < tol) & (period > 0) & (moving > 1e-3 * first) & ~wandered
    some = found.nonzero().squeeze(-1)
    if len(some):
        monodromy[some] = _around(flow.select((len(x),), some), point[some], period[some], CERTIFIED)
    blank = torch.where(found[:, None, None], point, torch.nan)
    return Closed(blank, torch.where(found, period, torch.nan), monodromy, residual * scale, found)


def smallest_period(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """The period itself, or the fraction of it after which the orbit closes already (up to a fifth)."""
    shares = torch.tensor([2.0, 3.0, 5.0], dtype=x.dtype, device=x.device).repeat_interleave(len(x))
    every = torch.arange(len(x), device=x.device).repeat(3)
    later = state_after(flow.select((len(x),), every), x[every], period[every] / shares, rtol=1e-8, atol=1e-10)
    length = torch.linalg.vector_norm(flow.velocity(x).flatten(1), dim=-1) * period
    closes = torch.linalg.vector_norm((later - x[every]).flatten(1), dim=-1) < 1e-6 * length[every]
    return period / torch.where(closes, shares, 1.0).reshape(3, -1).prod(dim=0)


def _directions(flow: AbstractFlow, x: Tensor) -> Float[Tensor, "batch k n d"]:
    """Every admissible direction of every token as a direction of the whole state."""
    basis = flow.basis(x)
    eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return torch.einsum("ij,biae->bieja", eye, basis).flatten(1, 2)


def _around(flow: AbstractFlow, x: Tensor, period: Tensor, rtol: float) -> Float[Tensor, "batch k k"]:
    """Derivative of the state one period later, compressed to the directions at the start."""
    directions = _directions(flow, x)
    variational = VariationalFlow(flow, directions.shape[1])
    end = state_after(variational, variational.pack(x, directions), period, rtol=rtol, atol=1e-2 * rtol)
    return torch.einsum("bknd,blnd->bkl", directions, variational.unpack(end)[1])


def _corrected(flow: AbstractFlow, x: Tensor, period: Tensor, end: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """One Newton step on point and period; the period changes by at most a third."""
    directions = _directions(flow, x)

    def inside(u: Tensor) -> Tensor:
        return torch.einsum("bknd,bnd->bk", directions, u)

    eye = torch.eye(matrix.shape[-1], dtype=x.dtype, device=x.device)
    phase, along = inside(flow.velocity(x)), inside(flow.velocity(end))
    corner = torch.zeros_like(phase[:, :1])
    top = torch.cat([matrix - eye, along.unsqueeze(-1)], dim=-1)
    system = torch.cat([top, torch.cat([phase, corner], dim=-1).unsqueeze(-2)], dim=-2)
    right = torch.cat([-inside(end - x), corner], dim=-1)
    safe = torch.isfinite(system).flatten(1).all(dim=-1)
    system = torch.where(safe[:, None, None], system, torch.zeros_like(system))
    move = torch.linalg.lstsq(system, right.nan_to_num().unsqueeze(-1), driver="gelsd").solution.squeeze(-1)
    share = (period / 3 / move[:, -1].abs().clamp_min(1e-300)).clamp_max(1.0)
    turn = torch.einsum("bk,bknd->bnd", share.unsqueeze(-1) * move[:, :-1], directions)
    return flow.project(x + turn), torch.where(safe, period + share * move[:, -1], torch.nan)


def transversal_multipliers(
    flow: AbstractSphereFlow, w: Float[Tensor, "batch m d"], sizes: Float[Tensor, "batch m"], period: Tensor
) -> Complex[Tensor, "batch m e"]:
    """What becomes of the halves of each cluster that part: to first order nobody else notices.

    Zero, at no cost, where every cluster is a single token, which has no halves.
    """
    if not bool((sizes > 1).any()):
        return torch.zeros(*w.shape[:-1], w.shape[-1] - 1, dtype=torch.complex128, device=w.device)
    halves = flow.with_sizes(torch.cat([sizes, sizes], dim=-1) / 2)
    basis = flow.basis(w)
    parting = basis.movedim(-1, 1)
    directions = torch.cat([parting, -parting], dim=-2)
    variational = VariationalFlow(halves, directions.shape[1])
    start = variational.pack(torch.cat([w, w], dim=-2), directions)
    end = state_after(variational, start, period, rtol=CERTIFIED, atol=1e-2 * CERTIFIED)
    _, moved = variational.unpack(end)
    blocks = torch.einsum("bmde,bfmd->bmef", basis, moved[..., : w.shape[1], :])
    bad = ~torch.isfinite(blocks).flatten(1).all(dim=-1)
    values = torch.linalg.eigvals(torch.where(bad[:, None, None, None], torch.zeros_like(blocks), blocks))
    return torch.where(bad[:, None, None], torch.full_like(values, torch.nan), values)


def close_orbits(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    period: Float[Tensor, " batch"],
    sizes: Float[Tensor, "batch n"] | None = None,
) -> tuple[Float[Tensor, "batch n d"], dict[int, Floquet]]:
    """States on closed orbits (NaN where none was found) and their certificates, by place in the batch.

    Tokens that move together are reduced to one, where the flow allows it, so that the cost does not depend on their
    number. ``sizes`` say how many tokens each row stands for.
    """
    points, certificates = torch.full_like(x, torch.nan), dict[int, Floquet]()
    if not (isinstance(flow, AbstractSphereFlow) and flow.reducible):
        _close_all(flow, x, period, points, certificates)
        return points, certificates
    clusters = find_clusters(x, TOGETHER)
    for m, chosen in by_count(clusters.n_clusters):
        if m * (x.shape[-1] - 1) > LARGEST_ORBIT:
            continue
        labels, own = clusters.labels[chosen], flow.select((len(x),), chosen)
        w, counts = cluster_means(x[chosen], labels, m, None if sizes is None else sizes[chosen])
        closed = shoot(own.with_sizes(counts), w, period[chosen])
        split = transversal_multipliers(
            own, closed.point.nan_to_num(nan=1.0), counts, closed.period.nan_to_num(nan=0.0)
        )
        points[chosen] = closed.point.gather(1, labels.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        _certify(closed, split, counts, chosen.tolist(), certificates)
    return points, certificates


def _close_all(flow: AbstractFlow, x: Tensor, period: Tensor, points: Tensor, certificates: dict[int, Floquet]) -> None:
    """Every token for itself."""
    if x.shape[1] * x.shape[2] > LARGEST_ORBIT:
        return
    closed = shoot(flow, x, period)
    points[:] = closed.point
    none = torch.zeros(*x.shape[:2], 0, dtype=torch.complex128, device=x.device)
    _certify(closed, none, torch.ones_like(x[..., 0]), list(range(len(x))), certificates)


def _certify(closed: Closed, split: Tensor, sizes: Tensor, places: list[int], certificates: dict[int, Floquet]) -> None:
    for row, place in enumerate(places):
        if bool(closed.found[row]) and bool(torch.isfinite(split[row].abs()).all()):
            certificates[place] = Floquet(
                period=float(closed.period[row]),
                quotient=torch.linalg.eigvals(closed.monodromy[row]),
                transversal=split[row],
                sizes=sizes[row],
                residual=float(closed.residual[row]),
            )
