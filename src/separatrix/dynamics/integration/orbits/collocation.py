r"""Closing an orbit all around at once: collocation.

The orbit is a polynomial of degree s on each of M intervals that satisfies the flow at s points. All points are
evaluated in one batch, and linearised; on every interval the inner unknowns are eliminated,

    \delta x_{i+1} = A_i \delta x_i + g_i \delta T + r_i,

and what remains is a system for point and period, as in shooting. The product of the A_i is the monodromy. The answer
on M intervals is compared with that on 2 M: the difference is the error estimate, and is what is asked to be small.

Source: Ascher, Mattheij, Russell, Numerical Solution of Boundary Value Problems for ODEs, chapter 5; superconvergence
of order 2 s or 2 s - 1 at the ends of the intervals: Hairer, Wanner, Solving ODEs II, section IV.5.
"""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Float
from torch import Tensor

from ...flows.base import AbstractFlow
from .closed import Closed, is_find, length
from .mesh import Path, guessed
from .newton import PRECISIONS, SETTLED, Around, Blocks, compressed, newton_on
from .points import POINTS, Points, gauss, radau

RESOLVED = 1e-6
"""Relative difference of two meshes in point and monodromy below which the finer one is believed."""

ENTRIES = 2_000_000
"""Entries of the inner systems that are solved together."""


def collocate(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    period: Float[Tensor, " batch"],
    blocks: Blocks | None = None,
    *,
    points: Points | None = None,
    path: Path | None = None,
    max_steps: int = 8,
) -> tuple[Closed, Float[Tensor, "batch m d d"]]:
    """The closed orbit near each state, and what one period makes of further linear motions along it.

    Args:
        flow: the flow of these elements, constant in time.
        x: states close to their orbits.
        period: guesses of the periods.
        blocks: matrices of the further motions, in coordinates of the whole space of a token.
        points: of an interval; if none are given those of Gauss, or of Radau where the motion took an implicit method.
        path: the motion over the guessed periods, if it is known.
        max_steps: Newton steps on the first mesh.

    Cost: one integration over a period, and a batch of M s velocities with their derivatives for each of about five
    Newton steps; time M (s n d)^3 and memory M (s n d)^2 per element, with M = 10 to 80 and s = 6.
    """
    spent = torch.zeros_like(period, dtype=torch.int64)
    if path is None:
        path, spent = guessed(flow, x, period)
    kind = 2 * path.intervals + path.stiff
    pieces = list[Tensor]()
    for each in torch.unique(kind).tolist():  # an element has the mesh it needs, whatever the others need
        together = max(1, ENTRIES // (each * (POINTS * x.shape[1] * x.shape[2]) ** 2))
        pieces += (kind == each).nonzero().squeeze(-1).split(together)
    done = [
        _collocate(flow.select((len(x),), at), x[at], period[at], path.keep(at), blocks, points, max_steps)
        for at in pieces
    ]
    order = torch.cat(pieces).argsort()
    closed = [{f.name: getattr(piece, f.name) for f in dataclasses.fields(Closed)} for piece, _ in done]
    whole = Closed(**{name: torch.cat([piece[name] for piece in closed])[order] for name in closed[0]})
    whole.evaluations.add_(spent)
    return whole, torch.cat([split for _, split in done])[order]


def _collocate(
    flow: AbstractFlow,
    x: Tensor,
    period: Tensor,
    path: Path,
    blocks: Blocks | None,
    points: Points | None,
    max_steps: int,
) -> tuple[Closed, Tensor]:
    """Newton's method on the first mesh, then on finer ones until two of them agree; all have the same first mesh."""
    points = (radau() if bool(path.stiff[0]) else gauss()) if points is None else points
    count, first = len(x), length(flow, x, period)
    tangent = flow.basis(x).shape[-1] * x.shape[1]
    mismatch, evaluations = path.mismatch, torch.zeros_like(period, dtype=torch.int64)
    size = torch.linalg.vector_norm(x.flatten(1), dim=-1).clamp_min(1e-280)
    found, unresolved = torch.zeros_like(period, dtype=torch.bool), torch.isfinite(mismatch) & ~path.lost
    point, error, residual = torch.full_like(x, torch.nan), torch.full_like(period, torch.inf), mismatch.clone()
    ends, going = torch.full_like(period, torch.nan), unresolved.nonzero().squeeze(-1)
    monodromy = x.new_full((count, tangent, tangent), torch.nan)
    split = x.new_zeros(count, 0 if blocks is None else x.shape[1], x.shape[-1], x.shape[-1])
    if not len(going):
        nothing = (point, ends, monodromy, error, residual, mismatch, error, found, unresolved, evaluations)
        return Closed(*nothing, path.stiff), split
    own = flow.select((count,), going)
    mesh = path.keep(going).mesh(own, period[going], x.shape[1:], int(path.intervals[0]), points)
    coarse = newton_on(own, mesh, x.shape[1:], blocks, 0, max_steps)
    evaluations[going] += coarse.evaluations
    for level in range(1, len(PRECISIONS)):
        near = is_find(
            flow.select((count,), going), x[going], first[going], _state(coarse, x.shape[1:]), coarse.mesh.period
        )
        lost = (coarse.update < 1e-6) & ~near
        unresolved[going[lost]] = False
        keep = ((coarse.update < 1e-3) & ~lost).nonzero().squeeze(-1)
        if not len(keep):
            break
        going = going[keep]
        own = flow.select((count,), going)
        finer = coarse.mesh.keep(keep).halved(coarse.slopes[keep], own, x.shape[1:])
        fine = newton_on(own, finer, x.shape[1:], blocks, level, 5)
        evaluations[going] += fine.evaluations
        wrong, apart = _difference(coarse, keep, fine)
        good = (fine.update < SETTLED) & (fine.gap < SETTLED * size[going]) & (apart < RESOLVED * size[going])
        good = good & (wrong < RESOLVED * _norm(fine.monodromy)) & fine.followed
        if bool(good.any()):
            at = going[good]
            point[at], ends[at] = _state(fine, x.shape[1:])[good], fine.mesh.period[good]
            monodromy[at] = compressed(flow.select((count,), at), point[at], fine.monodromy[good])
            split[at], error[at] = fine.split[good], wrong[good]
            residual[at] = (fine.gap + fine.update * size[going])[good]
            found[at], unresolved[at] = True, False
        rest = (~good).nonzero().squeeze(-1)
        if not len(rest):
            break
        going, coarse = going[rest], _part(fine, rest)
    near = torch.zeros_like(found)
    some = found.nonzero().squeeze(-1)
    near[some] = is_find(flow.select((count,), some), x[some], first[some], point[some], ends[some])
    found = found & near
    moved = torch.linalg.vector_norm((point - x).flatten(1), dim=-1)
    point, ends = torch.where(found[:, None, None], point, torch.nan), torch.where(found, ends, torch.nan)
    closed = Closed(
        point, ends, monodromy, error, residual, mismatch, moved, found, unresolved, evaluations, path.stiff
    )
    return closed, split


def _difference(coarse: Around, keep: Tensor, fine: Around) -> tuple[Tensor, Tensor]:
    """Of two meshes, in the propagators and in the point."""
    wrong = torch.linalg.matrix_norm(coarse.monodromy[keep] - fine.monodromy) + fine.update
    if fine.split.shape[1]:
        wrong = torch.maximum(wrong, torch.linalg.matrix_norm(coarse.split[keep] - fine.split).amax(dim=-1))
    apart = torch.linalg.vector_norm(coarse.mesh.ends[keep, 0] - fine.mesh.ends[:, 0], dim=-1)
    return torch.where(torch.isfinite(wrong), wrong, torch.inf), apart


def _norm(matrix: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(matrix).clamp_min(1.0)


def _part(around: Around, rest: Tensor) -> Around:
    return Around(
        around.mesh.keep(rest),
        around.slopes[rest],
        around.followed[rest],
        around.monodromy[rest],
        around.split[rest],
        around.update[rest],
        around.gap[rest],
        around.evaluations,
    )


def _state(around: Around, shape: torch.Size) -> Tensor:
    return around.mesh.ends[:, 0].unflatten(-1, shape)
