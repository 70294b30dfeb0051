"""Closed orbits that Newton's method found, whichever way, and what makes one of them a find."""

from __future__ import annotations

import dataclasses
from typing import final

import numpy
import scipy.linalg
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...flows.base import AbstractFlow

WANDER = 0.2
"""An orbit further from the state than this share of its length is another one."""

AT_REST = 1e-3
"""Share of the first length of an orbit below which it has shrunk to an equilibrium, which closes after any time."""


NEUTRAL = 1e-3
"""Distance of a multiplier from the unit circle below which its direction neither decays nor grows."""


@final
@dataclasses.dataclass(frozen=True)
class Closed:
    """Closed orbits through ``point``; NaN where none was found.

    ``monodromy`` is in tangent coordinates at the point, and ``error`` what is estimated to be wrong with it (norm of a
    matrix). ``mismatch`` is the distance by which the state that was given failed to return after the period that was
    given, ``moved`` how far the orbit lies from that state. ``unresolved`` marks those on which the method gave up
    although an orbit may be there. ``evaluations`` counts velocities and derivatives along directions; ``stiff`` says
    whether it took an implicit method to come around.
    """

    point: Float[Tensor, "batch n d"]
    period: Float[Tensor, " batch"]
    monodromy: Float[Tensor, "batch k k"]
    error: Float[Tensor, " batch"]
    residual: Float[Tensor, " batch"]
    mismatch: Float[Tensor, " batch"]
    moved: Float[Tensor, " batch"]
    found: Bool[Tensor, " batch"]
    unresolved: Bool[Tensor, " batch"]
    evaluations: Int[Tensor, " batch"]
    stiff: Bool[Tensor, " batch"]


def directions(flow: AbstractFlow, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch k n d"]:
    """Every admissible direction of every token as a direction of the whole state."""
    basis = flow.basis(x)
    eye = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return torch.einsum("ij,biae->bieja", eye, basis).flatten(1, 2)


def length(flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"]) -> Tensor:
    """Length of a loop that is passed at the present speed."""
    return torch.linalg.vector_norm(flow.velocity(x).flatten(1), dim=-1) * period


def is_find(flow: AbstractFlow, x: Tensor, first: Tensor, point: Tensor, period: Tensor) -> Bool[Tensor, " batch"]:
    """Whether an orbit through ``point`` is near x and no equilibrium; ``first`` is the length guessed at x."""
    moving = length(flow, point, period) > AT_REST * first
    wandered = torch.linalg.vector_norm((point - x).flatten(1), dim=-1) > WANDER * first
    return (period > 0) & moving & ~wandered


def correction(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    end: Tensor,
    along: Tensor,
    matrix: Tensor,
    period: Tensor,
    precision: float,
) -> tuple[Float[Tensor, "batch n d"], Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """One Newton step on point and period: a move of the point, a change of the period, and what gap that leaves.

    Args:
        flow: the flow of these elements.
        x: points.
        end: states one period later.
        along: derivative of the end in the period.
        matrix: derivative of the end in the point, in tangent coordinates.
        period: periods; they change by a third at most.
        precision: relative accuracy of the matrix.

    Where the system is singular within its precision (an orbit of a neutral family) the smallest move is taken: a
    full one would divide one rounding error by another. The period counts as the way that is passed in it, so that
    the smallest move does not depend on the unit of time. What the motion conserves (a left null vector of the system)
    the move conserves too, so that the orbit of the family is the one the state was on its way to.
    """
    every = directions(flow, x)

    def inside(u: Tensor) -> Tensor:
        return torch.einsum("bknd,bnd->bk", every, u)

    eye = torch.eye(matrix.shape[-1], dtype=x.dtype, device=x.device)
    phase = inside(flow.velocity(x))
    speed = torch.linalg.vector_norm(phase, dim=-1, keepdim=True).clamp_min(1e-280)
    corner = torch.zeros_like(speed)
    top = torch.cat([matrix - eye, (inside(along) / speed).unsqueeze(-1)], dim=-1)
    system = torch.cat([top, torch.cat([phase / speed, corner], dim=-1).unsqueeze(-2)], dim=-2)
    right = torch.cat([-inside(end - x), corner], dim=-1)
    conserved = _conserved(top, precision)
    system = torch.cat([system, torch.nn.functional.pad(conserved, (0, 1))], dim=-2)
    right = torch.cat([right, torch.zeros_like(right[:, :-1])], dim=-1)
    safe = torch.isfinite(system).flatten(1).all(dim=-1) & torch.isfinite(right).all(dim=-1)
    system = torch.where(safe[:, None, None], system, torch.zeros_like(system))
    right = torch.where(safe[:, None], right, torch.zeros_like(right))
    move = torch.linalg.lstsq(system, right.unsqueeze(-1), rcond=precision, driver="gelsd").solution.squeeze(-1)
    gap = torch.linalg.vector_norm((system @ move.unsqueeze(-1)).squeeze(-1) - right, dim=-1)
    change = move[:, -1] / speed.squeeze(-1)
    share = (period / 3 / change.abs().clamp_min(1e-300)).clamp_max(1.0)
    turn = torch.einsum("bk,bknd->bnd", share.unsqueeze(-1) * move[:, :-1], every)
    return turn, torch.where(safe, share * change, torch.nan), gap


def _conserved(top: Float[Tensor, "batch k k1"], precision: float) -> Float[Tensor, "batch k k"]:
    """Rows that are quantities no move changes after one period; zero rows for the others."""
    safe = torch.isfinite(top).flatten(1).all(dim=-1)
    left, size, _ = torch.linalg.svd(torch.where(safe[:, None, None], top, 0.0), full_matrices=False)
    null = size <= precision * size[:, :1]
    return torch.where((null & safe[:, None])[:, :, None], left.mT, 0.0)


def lasting(monodromy: Float[Tensor, "batch k k"], way: Float[Tensor, "batch k"]) -> Float[Tensor, "batch k"]:
    """What is left of a small way from an orbit after many turns: its part in the neutral directions.

    By the invariant subspaces of the monodromy (ordered Schur form and Sylvester's equation, which Jordan blocks do not
    trouble). Zero where the only neutral direction is that of the motion, or where something grows. Cost: k^3 each.
    """
    left = torch.zeros_like(way)
    for place, (matrix, part) in enumerate(
        zip(monodromy.cpu().double().numpy(), way.cpu().double().numpy(), strict=True)
    ):
        if not numpy.isfinite(matrix).all():
            continue
        upper, frame, count = scipy.linalg.schur(matrix, "real", sort=lambda re, im: numpy.hypot(re, im) > 1 - NEUTRAL)
        sizes = numpy.abs(numpy.linalg.eigvals(upper[:count, :count]))
        if not 1 < count < len(upper) or (sizes > 1 + NEUTRAL).any():
            continue
        mixed = scipy.linalg.solve_sylvester(upper[:count, :count], -upper[count:, count:], -upper[:count, count:])
        inner = frame.T @ part
        kept = frame[:, :count] @ (inner[:count] - mixed @ inner[count:])
        left[place] = torch.from_numpy(kept).to(way)
    return left


def across(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], monodromy: Float[Tensor, "batch k k"]
) -> Float[Tensor, "batch k1 k1"]:
    """The monodromy on a section across the orbit.

    The velocity is an eigenvector with eigenvalue 1. Taken out exactly, it cannot mix with a second multiplier 1 (a
    neutral centre has a Jordan block there, whose halves part by the root of the error).
    """
    velocity = torch.einsum("bknd,bnd->bk", directions(flow, x), flow.velocity(x))
    speed = torch.linalg.vector_norm(velocity, dim=-1, keepdim=True).clamp_min(1e-280)
    frame = torch.linalg.qr((velocity / speed).unsqueeze(-1), mode="complete").Q[..., 1:]
    return frame.mT @ monodromy @ frame


def defect(flow: AbstractFlow, x: Float[Tensor, "batch n d"], monodromy: Tensor) -> Float[Tensor, " batch"]:
    """By how much the monodromy fails to keep the velocity: an error that can be seen."""
    velocity = torch.einsum("bknd,bnd->bk", directions(flow, x), flow.velocity(x)).unsqueeze(-1)
    speed = torch.linalg.vector_norm(velocity, dim=(-2, -1)).clamp_min(1e-280)
    return torch.linalg.vector_norm(monodromy @ velocity - velocity, dim=(-2, -1)) / speed
