"""Where a motion ends on a continuum of equilibria that attracts.

Newton's method finds some point of the continuum; the motion ends at another, as far away as the state is. Steps grow
to the limit of stability beside an equilibrium, so that errors of the size of the tolerance may keep a motion alive
there without end: its place must be told before.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.arithmetic.linear_systems import solve_ex

from ..equilibria.polishing import polish
from ..flows.base import AbstractFlow

SINGULAR = 1e-8
"""Singular values of a Jacobian, over its norm, that are those of a continuum of equilibria."""

STILL = 1e-6
"""Eigenvalues, over the norm, that may be zero: where eigenvectors are missing they part by the root of rounding."""


@final
@dataclasses.dataclass(frozen=True)
class Landing:
    """Equilibria at which motions end, and how far from there they may end (infinite where nothing is known)."""

    point: Float[Tensor, "batch n d"]
    doubt: Float[Tensor, " batch"]


def land(flow: AbstractFlow, x: Float[Tensor, "batch n d"], found: Float[Tensor, "batch n d"]) -> Landing:
    r"""The equilibria at which motions from x end, which is beside the equilibria ``found`` of a continuum.

    With J the Jacobian at the equilibrium p and y = x - p, the linear motion ends at p + P y, where P is the spectral
    projector onto the kernel of J along the sum of all other eigenspaces, which must contract. What f has beyond J y
    moves the end by at most its size over the slowest rate; it is taken at y and a quarter of a turn later, as it may
    vanish by chance. If the point next to p + P y that rests is further away than that, p was no continuum's.

    Cost: dense eigenvectors and singular values, a few Newton steps.
    """
    basis, jacobian = flow.basis(found), flow.jacobian(found)
    values, vectors = eig(jacobian)
    size = torch.linalg.matrix_norm(jacobian, ord=2)
    still = values.abs() <= STILL * size[:, None]
    away = (basis.mT @ (x - found).unsqueeze(-1)).flatten(1)
    parts = solve_ex(vectors, away.to(vectors.dtype).unsqueeze(-1))[0]
    along = (vectors @ torch.where(still.unsqueeze(-1), parts, 0.0)).real.squeeze(-1)
    aim = flow.project(found + _turn(basis, along))
    polished = polish(flow, torch.where(torch.isfinite(aim), aim, found))
    point = torch.where(polished.found[:, None, None], polished.point, found)
    rates = torch.where(still, torch.inf, -values.real).amin(dim=-1)
    doubt = polished.displacement + _beyond_linear(flow, found, jacobian, away, values, still) / rates
    known = polished.found & (rates > SINGULAR * size) & torch.isfinite(rates) & _is_kernel(jacobian, still)
    known = known & torch.isfinite(doubt)
    return Landing(torch.where(known[:, None, None], point, found), torch.where(known, doubt, torch.inf))


def _is_kernel(jacobian: Tensor, still: Tensor) -> Bool[Tensor, " batch"]:
    """Whether there are as many eigenvectors of zero as zeros: otherwise the motion drifts along the continuum."""
    singular = torch.linalg.svdvals(jacobian)
    return (singular <= SINGULAR * singular[:, :1]).sum(dim=-1) == still.sum(dim=-1)


def _beyond_linear(
    flow: AbstractFlow, found: Tensor, jacobian: Tensor, away: Tensor, values: Tensor, still: Tensor
) -> Float[Tensor, " batch"]:
    """The largest of |f(p + y) - J y| at two places of a turn."""
    basis, largest = flow.basis(found), torch.where(still, 0.0, values.abs()).amax(dim=-1, keepdim=True)
    later = (jacobian @ away.unsqueeze(-1)).squeeze(-1) / largest.clamp_min(1e-280)
    sizes = []
    for offset in (away, later):
        pull = (basis.mT @ flow.velocity(flow.project(found + _turn(basis, offset))).unsqueeze(-1)).flatten(1)
        sizes.append(torch.linalg.vector_norm(pull - (jacobian @ offset.unsqueeze(-1)).squeeze(-1), dim=-1))
    return torch.maximum(*sizes)


def _turn(basis: Tensor, move: Tensor) -> Tensor:
    return (basis @ move.reshape(*basis.shape[:-2], basis.shape[-1], 1)).squeeze(-1)
