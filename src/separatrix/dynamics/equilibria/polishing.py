"""Newton's method on the sphere: from a state that almost rests to the equilibrium beside it."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, Result

from ..flows.base import AbstractSphereFlow
from ..flows.sphere import angles, normalise

STEP_LIMIT = 0.2
"""Largest turn of a token in one Newton step, in radians."""

MAX_DISPLACEMENT = 0.05
"""An equilibrium further away than this (radians) is not the one the state was heading for."""

RESIDUAL = 1e-13


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
    flow: AbstractSphereFlow,
    w: Float[Tensor, "*batch m d"],
    sizes: Float[Tensor, "*axes m"] | None = None,
    *,
    max_steps: int = 20,
    max_displacement: float = MAX_DISPLACEMENT,
) -> Polished:
    """The equilibrium beside each state, by Newton's method in tangent coordinates.

    Args:
        flow: the flow of the tokens.
        w: states, float64: all tokens, or one row per cluster.
        sizes: how many tokens each row stands for.
        max_steps: Newton steps before giving up.
        max_displacement: turn of any token, in radians, beyond which the equilibrium is not called nearby.

    Returns:
        Points with speed below 1e-13 times the larger of 1 and the norm of V, one outcome per element.

    Cost: O(m^3 d^3) per step and element.
    """
    if w.dtype != torch.float64:
        raise InvalidInput(f"polish needs float64 states, because float32 cannot reach its residual; got {w.dtype}.")
    reduced = flow if sizes is None else flow.with_sizes(sizes)
    tol = RESIDUAL * reduced.rate.clamp_min(1.0).expand(w.shape[:-2])
    point = best = w
    lowest = reduced.residual(w)
    steps = 0
    while steps < max_steps:
        steps += 1
        point = _newton_step(reduced, point)
        residual = reduced.residual(point)
        better = residual < lowest
        best = torch.where(better[..., None, None], point, best)
        lowest = torch.where(better, residual, lowest)
        if not bool((better & (lowest > 0.1 * tol)).any()):
            break  # every element has arrived or stopped improving
    moved = angles(best, w).amax(dim=-1)
    found = (lowest <= tol) & (moved <= max_displacement)
    outcome = torch.where(found, int(Outcome.CONVERGED), int(Outcome.STALLED))
    return Polished(torch.where(found[..., None, None], best, torch.nan), lowest, moved, outcome, steps)


def _newton_step(flow: AbstractSphereFlow, w: Tensor) -> Tensor:
    """One step, turning no token by more than the limit.

    Where plain elimination asks for more than that, equilibria may form a continuum and the Jacobian is singular along
    it: there the least move is taken, which leaves such directions alone.
    """
    basis = flow.basis(w)
    pull = (basis.mT @ flow.velocity(w).unsqueeze(-1)).flatten(-3)
    jacobian = flow.jacobian(w)
    move, info = torch.linalg.solve_ex(jacobian, -pull)
    turn = _as_turn(basis, move)
    wild = (info != 0) | ~(torch.linalg.vector_norm(turn, dim=-1).amax(dim=-1) < STEP_LIMIT)
    if bool(wild.any()):
        least = -(torch.linalg.pinv(jacobian[wild], rtol=1e-8) @ pull[wild].unsqueeze(-1)).squeeze(-1)
        turn[wild] = _as_turn(basis[wild], least)
    largest = torch.linalg.vector_norm(turn, dim=-1).amax(dim=-1)[..., None, None]
    return normalise(w + turn * (STEP_LIMIT / largest.clamp_min(STEP_LIMIT)))


def _as_turn(basis: Tensor, move: Tensor) -> Tensor:
    return (basis @ move.reshape(*basis.shape[:-2], basis.shape[-1], 1)).squeeze(-1)
