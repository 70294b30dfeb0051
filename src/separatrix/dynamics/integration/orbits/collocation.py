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
from collections.abc import Callable
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...flows.base import AbstractFlow
from ..methods.rosenbrock import slope_matrix
from .closed import Closed, correction, directions, is_find, length
from .mesh import POINTS, Mesh, Path, Points, gauss, guessed, projected, radau

PRECISIONS = (1e-3, 1e-5, 1e-7, 1e-9, 1e-10)
"""Relative accuracy with which the first mesh, and every halving of its intervals, tells a singular system."""

NEARLY, SETTLED = 1e-6, 1e-8
"""Newton steps on the first mesh, and on the finer ones, end when the whole orbit moves by less than this share of its
size; the next step would be its square."""

RESOLVED = 1e-6
"""Relative difference of two meshes in point and monodromy below which the finer one is believed."""

ENTRIES = 2_000_000
"""Entries of the inner systems that are solved together."""

Blocks: TypeAlias = Callable[[AbstractFlow, Tensor], Tensor]
"""Flow and states (points, n, d) to matrices (points, m, d, d) of further linear motions along the orbit."""


@final
@dataclasses.dataclass(frozen=True)
class Around:
    """An orbit on one mesh, after Newton's method; ``split`` are the propagators of the further linear motions."""

    mesh: Mesh
    slopes: Float[Tensor, "batch intervals s k"]
    followed: Bool[Tensor, " batch"]
    """Whether the points can follow all rates along the orbit."""
    monodromy: Float[Tensor, "batch k k"]
    split: Float[Tensor, "batch m d d"]
    update: Float[Tensor, " batch"]
    """The last Newton step, relative to the size of the orbit."""
    gap: Float[Tensor, " batch"]
    """What it leaves open."""
    evaluations: int


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
    if not len(going):
        empty = x.new_full((count, tangent, tangent), torch.nan)
        split = x.new_zeros(count, 0 if blocks is None else x.shape[1], x.shape[-1], x.shape[-1])
        return Closed(
            point, ends, empty, error, residual, mismatch, error, found, unresolved, evaluations, path.stiff
        ), split
    own = flow.select((count,), going)
    mesh = path.keep(going).mesh(own, period[going], x.shape[1:], int(path.intervals[0]), points)
    coarse = _newton(own, mesh, x.shape[1:], blocks, 0, max_steps)
    monodromy = x.new_full((count, tangent, tangent), torch.nan)
    split = x.new_zeros(count, *coarse.split.shape[1:])
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
        fine = _newton(own, finer, x.shape[1:], blocks, level, 5)
        evaluations[going] += fine.evaluations
        wrong, apart = _difference(coarse, keep, fine)
        good = (fine.update < SETTLED) & (fine.gap < SETTLED * size[going]) & (apart < RESOLVED * size[going])
        good = good & (wrong < RESOLVED * _norm(fine.monodromy)) & fine.followed
        if bool(good.any()):
            at = going[good]
            point[at], ends[at] = _state(fine, x.shape[1:])[good], fine.mesh.period[good]
            monodromy[at] = _compressed(flow.select((count,), at), point[at], fine.monodromy[good])
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


def _newton(
    flow: AbstractFlow, mesh: Mesh, shape: torch.Size, blocks: Blocks | None, level: int, max_steps: int
) -> Around:
    """Newton steps until every orbit stands still or is lost; all take the same number of steps or fewer."""
    batch, update = len(mesh.period), torch.full_like(mesh.period, torch.inf)
    scale = torch.linalg.vector_norm(mesh.ends[:, 0], dim=-1).clamp_min(1e-280)
    spent, cost = 0, mesh.inner.shape[1] * POINTS * (1 + mesh.inner.shape[-1])
    every = torch.arange(batch, device=update.device).repeat_interleave(mesh.inner.shape[1] * POINTS)
    wide = flow.select((batch,), every)
    slopes, monodromy = mesh.inner, mesh.inner.new_zeros(batch, mesh.inner.shape[-1], mesh.inner.shape[-1])
    matrices = mesh.inner.new_zeros(*mesh.inner.shape, mesh.inner.shape[-1])
    gap = update
    for _ in range(max_steps):
        states = mesh.inner.reshape(-1, *shape)
        slopes = wide.velocity(states).reshape(mesh.inner.shape)
        matrices = slope_matrix(wide, states, None).unflatten(0, mesh.inner.shape[:3])
        spent += cost
        step, update, gap, monodromy = _step(flow, mesh, slopes, matrices, shape, PRECISIONS[level])
        update = torch.where(torch.isfinite(update), update / scale, torch.inf)
        for name in ("ends", "inner", "period"):
            setattr(mesh, name, getattr(step, name))
        if bool(((update < (SETTLED if level else NEARLY)) | ~torch.isfinite(update)).all()):
            break
    split = _split(wide, mesh, shape, blocks)
    return Around(mesh, slopes, _followed(mesh, matrices), monodromy, split, update, gap, spent)


def _followed(mesh: Mesh, matrices: Float[Tensor, "batch intervals s k k"]) -> Bool[Tensor, " batch"]:
    """Whether the eigenvalues at all points, times the lengths of the intervals, are such as the points can follow."""
    safe = torch.isfinite(matrices).flatten(1).all(dim=-1)
    values = torch.linalg.eigvals(torch.where(safe[:, None, None, None, None], matrices, 0.0))
    time = (mesh.size * mesh.period.unsqueeze(-1))[..., None, None]
    return safe & mesh.points.followed(values * time).flatten(1).all(dim=-1)


def _step(
    flow: AbstractFlow, mesh: Mesh, slopes: Tensor, matrices: Tensor, shape: torch.Size, precision: float
) -> tuple[Mesh, Tensor, Tensor, Tensor]:
    """One Newton step: the mesh after it, the largest move, what stays open, and the monodromy before it."""
    inner, weights = mesh.points.inner.to(slopes.device), mesh.points.weights.to(slopes.device)
    k, size = slopes.shape[-1], mesh.size[..., None, None]
    time = size * mesh.period[:, None, None, None]
    summed = torch.einsum("jl,bilk->bijk", inner, slopes)
    left = mesh.ends[:, :-1].unsqueeze(2) + time * summed - mesh.inner
    eye = torch.eye(k, dtype=slopes.dtype, device=slopes.device)
    stacked = eye.expand(*slopes.shape, k)
    right = torch.cat([stacked, (size * summed).unsqueeze(-1), left.unsqueeze(-1)], dim=-1)
    solved = _eliminated(inner, time, matrices, right)
    moved = torch.einsum("l,bilkc->bikc", weights, matrices @ solved) * time
    ahead = torch.einsum("l,bilk->bik", weights, slopes)
    jump = mesh.ends[:, :-1] + time[..., 0] * ahead - mesh.ends[:, 1:]
    maps = eye + moved[..., :k]
    drifts, gaps = size[..., 0] * ahead + moved[..., k], jump + moved[..., k + 1]
    total, drift, gap = eye.expand(len(maps), k, k), torch.zeros_like(gaps[:, 0]), torch.zeros_like(gaps[:, 0])
    for i in range(maps.shape[1]):
        total = maps[:, i] @ total
        drift = (maps[:, i] @ drift.unsqueeze(-1)).squeeze(-1) + drifts[:, i]
        gap = (maps[:, i] @ gap.unsqueeze(-1)).squeeze(-1) + gaps[:, i]
    start = mesh.ends[:, 0].unflatten(-1, shape)
    end = (mesh.ends[:, -1] + gap).unflatten(-1, shape)
    turn, change, open_ = correction(
        flow, start, end, drift.unflatten(-1, shape), _compressed(flow, start, total), mesh.period, precision
    )
    here, ends, points = turn.flatten(1), [], []
    for i in range(maps.shape[1]):
        ends.append(here)
        unknown = torch.cat([here, change.unsqueeze(-1), torch.ones_like(change).unsqueeze(-1)], dim=-1)
        points.append(torch.einsum("bjkc,bc->bjk", solved[:, i], unknown))
        here = (maps[:, i] @ here.unsqueeze(-1)).squeeze(-1) + drifts[:, i] * change.unsqueeze(-1) + gaps[:, i]
    ends.append(here)
    move, shift = torch.stack(points, dim=1), torch.stack(ends, dim=1)
    update = torch.linalg.vector_norm(shift, dim=-1).amax(dim=-1)
    update = torch.maximum(update, torch.linalg.vector_norm(move, dim=-1).flatten(1).amax(dim=-1))
    after = Mesh(
        mesh.size,
        projected(flow, mesh.ends + shift, shape),
        projected(flow, mesh.inner + move, shape),
        mesh.period + change,
        mesh.points,
    )
    return after, torch.maximum(update, change.abs() * _speed(slopes)), open_, total


def _eliminated(inner: Tensor, time: Tensor, matrices: Tensor, right: Tensor) -> Tensor:
    """The states at the points of each interval, for every column of the right sides (..., s, k, columns)."""
    s, k = matrices.shape[-3:-1]
    blocks = torch.einsum("jl,...lkc->...jklc", inner, time.unsqueeze(-1) * matrices)
    system = torch.eye(s * k, dtype=right.dtype, device=right.device) - blocks.flatten(-4, -3).flatten(-2, -1)
    return torch.linalg.solve_ex(system, right.flatten(-3, -2))[0].unflatten(-2, (s, k))


def _split(flow: AbstractFlow, mesh: Mesh, shape: torch.Size, blocks: Blocks | None) -> Tensor:
    """What becomes of further linear motions after one period, on the same points."""
    if blocks is None:
        return mesh.inner.new_zeros(len(mesh.period), 0, shape[-1], shape[-1])
    inner, weights = (part.to(mesh.inner.device) for part in (mesh.points.inner, mesh.points.weights))
    matrices = blocks(flow, mesh.inner.reshape(-1, *shape)).unflatten(0, mesh.inner.shape[:3])
    matrices = matrices.movedim(3, 2)  # batch, interval, block, point
    time = (mesh.size * mesh.period.unsqueeze(-1))[:, :, None, None, None]
    eye = torch.eye(shape[-1], dtype=mesh.inner.dtype, device=mesh.inner.device)
    solved = _eliminated(inner, time, matrices, eye.expand(*matrices.shape[:-2], *eye.shape))
    maps = eye + torch.einsum("l,bimlkc->bimkc", weights, matrices @ solved) * time
    total = maps[:, 0]
    for i in range(1, maps.shape[1]):
        total = maps[:, i] @ total
    return total


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


def _speed(slopes: Tensor) -> Tensor:
    return torch.linalg.vector_norm(slopes, dim=-1).flatten(1).amax(dim=-1)


def _compressed(flow: AbstractFlow, x: Tensor, matrix: Tensor) -> Float[Tensor, "batch t t"]:
    """A matrix of the whole space on the admissible directions at x."""
    frame = directions(flow, x).flatten(2)
    return frame @ matrix @ frame.mT
