"""Two ways to a point of rest: Newton's method on the map of rest, and descent of the speed of the state."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.linear_systems import solve_ex

from ..steps.base import AbstractRecurrentMap
from .portions import joined, portions

NEWTON_STEPS = 60
DESCENT_STEPS = 120
_HALVINGS = 8


def newton(
    layer: AbstractRecurrentMap, x: Float[Tensor, "b i"], y: Float[Tensor, "b m"], tol: float
) -> Float[Tensor, "b m"]:
    """Newton's method with halved steps from every start at once; a start that gets stuck stays where it is.

    A step is taken only if it makes ``|rest_map(y) - y|`` smaller.

    Cost: O(b m^3) a step, at most 60 steps.
    """
    return joined([_newton(layer, x[part], y[part], tol) for part in portions(len(y), y.shape[-1])])


def _newton(layer: AbstractRecurrentMap, x: Tensor, y: Tensor, tol: float) -> Float[Tensor, "b m"]:
    active = torch.arange(len(y))
    best = y.clone()
    eye = torch.eye(y.shape[-1], dtype=y.dtype)
    for _ in range(NEWTON_STEPS):
        now, given = best[active], x[active]
        gap = layer.rest_map(given, now) - now
        matrix = eye - layer.rest_jacobian(given, now)
        move, info = solve_ex(matrix, gap)
        usable = (info == 0) & torch.isfinite(move).all(-1)
        move = torch.where(usable.unsqueeze(-1), move, gap)
        after, moved = _halved(layer, given, now, move, gap)
        best[active] = after
        short = move.abs().amax(-1) <= 0.01 * tol * now.abs().amax(-1).clamp_min(1.0)
        active = active[moved & ~short]
        if not len(active):
            break
    return best


def _halved(
    layer: AbstractRecurrentMap, x: Tensor, y: Tensor, move: Tensor, gap: Tensor
) -> tuple[Float[Tensor, "b m"], Tensor]:
    """The longest of the halved steps that makes the gap smaller, and whether there was one."""
    size, reached = torch.linalg.vector_norm(gap, dim=-1), y.clone()
    open_rows, share = torch.ones(len(y), dtype=torch.bool), 1.0
    for _ in range(_HALVINGS):
        rows = open_rows.nonzero()[:, 0]
        trial = y[rows] + share * move[rows]
        left = torch.linalg.vector_norm(layer.rest_map(x[rows], trial) - trial, dim=-1)
        better = torch.isfinite(left) & (left < size[rows] * (1 - 0.1 * share))
        reached[rows[better]] = trial[better]
        open_rows[rows[better]] = False
        if not bool(open_rows.any()):
            break
        share /= 2
    return reached, ~open_rows


def descend(
    layer: AbstractRecurrentMap, x: Float[Tensor, "b i"], state: Float[Tensor, "b n"]
) -> tuple[Float[Tensor, "b n"], Float[Tensor, " b"]]:
    """Slide down the squared speed of the state (Levenberg and Marquardt) to its local minima.

    Returns:
        The states reached, and how flat the squared speed is there: the length of its gradient over what the speed
        and the largest Jacobian on the way would allow, at most one, and zero at a minimum.

    Cost: O(b n^3) a step, at most 120 steps.
    """
    parts = [_descend(layer, x[part], state[part]) for part in portions(len(state), state.shape[-1])]
    return joined([here for here, _ in parts]), joined([flat for _, flat in parts])


def _descend(layer: AbstractRecurrentMap, x: Tensor, state: Tensor) -> tuple[Float[Tensor, "b n"], Float[Tensor, " b"]]:
    damping = torch.full((len(state),), 1e-2, dtype=state.dtype)
    here, eye = state.clone(), torch.eye(state.shape[-1], dtype=state.dtype)
    speed = layer.displacement(x, here)
    flatness = torch.ones(len(state), dtype=state.dtype)
    steepest = torch.full_like(flatness, 1e-150)  # on the way: at a minimum the slope itself may be zero
    active = torch.arange(len(state))
    for _ in range(DESCENT_STEPS):
        now, given, pull = here[active], x[active], speed[active]
        slope = layer.jacobian(given, now) - eye
        gradient = (slope.mT @ pull.unsqueeze(-1)).squeeze(-1)
        steepest[active] = torch.maximum(steepest[active], torch.linalg.matrix_norm(slope))
        allowed = steepest[active] * torch.linalg.vector_norm(pull, dim=-1)
        flatness[active] = torch.linalg.vector_norm(gradient, dim=-1) / allowed.clamp_min(1e-300)
        normal = slope.mT @ slope
        unit = damping[active] * steepest[active].square()
        move, _ = solve_ex(normal + unit[:, None, None] * eye, -gradient)
        trial = now + move
        after = layer.displacement(given, trial)
        better = torch.isfinite(after).all(-1) & (after.square().sum(-1) < pull.square().sum(-1))
        rows = active[better]
        here[rows], speed[rows] = trial[better], after[better]
        damping[active] = torch.where(better, damping[active] / 5, damping[active] * 8).clamp(1e-14, 1e8)
        going = (flatness[active] > 1e-8) & (damping[active] < 1e7) & (pull.abs().amax(-1) > 0)
        active = active[going]
        if not len(active):
            break
    return here, flatness
