"""Newton's method on the space of a flow: from a state that almost rests to the equilibrium beside it."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, Result
from separatrix.core.arithmetic.linear_systems import solve_ex

from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere

STEP_LIMIT = 0.2
"""Largest turn of a token in one Newton step, in radians."""

MAX_DISPLACEMENT = 0.05
"""An equilibrium further away than this (radians) is not the one the state was heading for."""

RESIDUAL = 1e-13

WILD = 100.0
"""Moves of a Newton step, over |f| / |f'|, from which it is looked whether the Jacobian is singular."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Polished(Result):
    """What Newton's method found beside each element; NaN where there is no equilibrium nearby."""

    point: Float[Tensor, "*batch m d"]
    residual: Float[Tensor, "*batch"]
    displacement: Float[Tensor, "*batch"]
    outcome: Int[Tensor, "*batch"]
    steps: int

    @property
    def found(self) -> Tensor:
        """True where an equilibrium lies within the allowed displacement."""
        return self.outcome == Outcome.CONVERGED


def polish(
    flow: AbstractFlow,
    w: Float[Tensor, "*batch m d"],
    sizes: Float[Tensor, "*axes m"] | None = None,
    *,
    max_steps: int = 40,
    max_displacement: float | Float[Tensor, "*batch"] | None = None,
) -> Polished:
    """The equilibrium beside each state, by Newton's method in tangent coordinates.

    Args:
        flow: the flow of the tokens.
        w: states, float64: all tokens, or one row per cluster.
        sizes: how many tokens each row stands for; for flows on the sphere.
        max_steps: Newton steps before giving up.
        max_displacement: distance of any token (radians on the sphere) beyond which the equilibrium is not called
            nearby. By default 0.05 on the sphere, and no limit elsewhere.

    Returns:
        Points with speed below 1e-13 times the scale of speeds: the rate of the flow on the sphere, the largest entry
        of |J| |x| elsewhere. One outcome per element.

    Cost: O(m^3 d^3) per step and element.
    """
    if w.dtype != torch.float64:
        raise InvalidInput(f"polish needs float64 states, because float32 cannot reach its residual; got {w.dtype}.")
    reduced = flow if sizes is None else require_sphere(flow, "polish with sizes").with_sizes(sizes)
    on_sphere = isinstance(reduced, AbstractSphereFlow)
    limit = (MAX_DISPLACEMENT if on_sphere else math.inf) if max_displacement is None else max_displacement
    longest = STEP_LIMIT if on_sphere else limit
    tol = RESIDUAL * _speed_scale(reduced, w)
    point = best = w
    lowest = reduced.residual(w)
    steps = 0
    while steps < max_steps:
        steps += 1
        point = _newton_step(reduced, point, longest)
        residual = reduced.residual(point)
        better = (residual < lowest) & (lowest > 0.1 * tol)
        best = torch.where(better[..., None, None], point, best)
        lowest = torch.where(better, residual, lowest)
        if not bool((better & (lowest > 0.1 * tol)).any()):
            break  # every element has arrived or stopped improving
    moved = reduced.distances(best, w).amax(dim=-1)
    found = (lowest <= tol) & (moved <= limit)
    outcome = torch.where(found, int(Outcome.CONVERGED), int(Outcome.STALLED))
    return Polished(torch.where(found[..., None, None], best, torch.nan), lowest, moved, outcome, steps)


def _speed_scale(flow: AbstractFlow, w: Tensor) -> Tensor:
    """Speeds that rounding of the state alone would cause, over the rounding unit."""
    if isinstance(flow, AbstractSphereFlow):
        return flow.rate.expand(w.shape[:-2])
    # Entry by entry: a stiff flow has large derivatives in entries that hardly move, which excuse no speed elsewhere.
    terms = (flow.jacobian(w).abs() @ w.flatten(-2).abs().unsqueeze(-1)).squeeze(-1).amax(dim=-1)
    # The equilibrium may be the origin and the state beside it tiny: then the distance to it counts.
    return torch.maximum(terms, flow.residual(w)).clamp_min(1e-280)


def _newton_step(flow: AbstractFlow, w: Tensor, longest: float | Tensor) -> Tensor:
    """One step, moving no token by more than the limit.

    Where plain elimination asks for more than that, or for much more than velocity and derivative predict, equilibria
    may form a continuum and the Jacobian is singular along it: there the least move is taken, which leaves such
    directions alone.
    """
    basis = flow.basis(w)
    pull = (basis.mT @ flow.velocity(w).unsqueeze(-1)).flatten(-3)
    jacobian = flow.jacobian(w)
    move, info = solve_ex(jacobian, -pull)
    turn = _as_turn(basis, move)
    predicted = torch.linalg.vector_norm(pull, dim=-1) / torch.linalg.matrix_norm(jacobian)
    wild = (info != 0) | ~(torch.linalg.vector_norm(turn, dim=-1).amax(dim=-1) < longest)
    wild = wild | (torch.linalg.vector_norm(move, dim=-1) > WILD * predicted)
    wild = wild & torch.isfinite(jacobian).flatten(-2).all(dim=-1)
    full = _moved(flow, w, turn, longest)
    if not bool(wild.any()):
        return full
    least = -(torch.linalg.pinv(jacobian[wild], rtol=1e-8) @ pull[wild].unsqueeze(-1)).squeeze(-1)
    turn[wild] = _as_turn(basis[wild], least)
    small = _moved(flow, w, turn, longest)
    # At a multiple zero the slow direction is no continuum: there the full move, and it alone, leads on.
    leads = wild & (info == 0) & (flow.residual(full) < 0.5 * flow.residual(small))
    return torch.where(leads[..., None, None], full, small)


def _moved(flow: AbstractFlow, w: Tensor, turn: Tensor, longest: float | Tensor) -> Tensor:
    """The states after moves, none longer than allowed."""
    largest = torch.linalg.vector_norm(turn, dim=-1).amax(dim=-1)
    share = torch.as_tensor(longest, dtype=w.dtype, device=w.device) / largest
    return flow.project(w + turn * torch.where(share < 1, share, torch.ones_like(share))[..., None, None])


def _as_turn(basis: Tensor, move: Tensor) -> Tensor:
    return (basis @ move.reshape(*basis.shape[:-2], basis.shape[-1], 1)).squeeze(-1)
