r"""Newton's method on one mesh: all points of an orbit are linearised at once, and the inner ones eliminated.

On every interval

    \delta x_{i+1} = A_i \delta x_i + g_i \delta T + r_i,

and what remains is a system for point and period, as in shooting. The product of the A_i is the monodromy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.arithmetic.linear_systems import solve_ex

from ...flows.base import AbstractFlow
from ..methods.rosenbrock import slope_matrix
from .closed import correction, directions
from .mesh import Mesh, projected
from .points import POINTS

PRECISIONS = (1e-3, 1e-5, 1e-7, 1e-9, 1e-10)
"""Relative accuracy with which the first mesh, and every halving of its intervals, tells a singular system."""

NEARLY, SETTLED = 1e-6, 1e-8
"""Newton steps on the first mesh, and on the finer ones, end when the whole orbit moves by less than this share of its
size; the next step would be its square."""

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


def newton_on(
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
    values = eigvals(torch.where(safe[:, None, None, None, None], matrices, 0.0))
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
        flow, start, end, drift.unflatten(-1, shape), compressed(flow, start, total), mesh.period, precision
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
    return solve_ex(system, right.flatten(-3, -2))[0].unflatten(-2, (s, k))


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


def _speed(slopes: Tensor) -> Tensor:
    return torch.linalg.vector_norm(slopes, dim=-1).flatten(1).amax(dim=-1)


def compressed(flow: AbstractFlow, x: Tensor, matrix: Tensor) -> Float[Tensor, "batch t t"]:
    """A matrix of the whole space on the admissible directions at x."""
    frame = directions(flow, x).flatten(2)
    return frame @ matrix @ frame.mT
