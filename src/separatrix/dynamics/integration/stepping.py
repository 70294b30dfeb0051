"""One step of a pool, and what keeps steps small."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eigvals

from ..flows.base import AbstractFlow
from .methods.base import AbstractMethod, Attempt, Start
from .methods.control import AbstractControl
from .methods.rosenbrock import slope_matrix
from .pool import Pool

ROUND = 12
"""Steps between two sortings of the pools."""

SINGLE_PRECISION_FLOOR = 1e-3
"""Relative speed below which rounding in float32 would show."""

SMALL_STEP = 2e-2
"""Step size, in units of 1 / rate, below which it is asked what keeps the steps of a trajectory small."""

SMALL_TURN, RELAX_STEPS = 1e-2, 60
"""Way of a step, in radians or over the way come so far, below which the same is asked after so many steps."""

STIFF, SMOOTH = 1.5, 0.7
"""Step size times the norm of the Jacobian above which stability keeps it small, and below which accuracy does."""

DECAYS = 1.0
"""Step size times the fastest decay above which stability may be what keeps steps small."""

LARGEST_IMPLICIT = 600
"""Entries of a state up to which an implicit method is worth its dense systems."""


def advance(
    flow: AbstractFlow, method: AbstractMethod, control: AbstractControl, pool: Pool, goal: Tensor
) -> tuple[Tensor, Attempt]:
    """One step of a pool in place, where the error allows, not beyond ``goal``; returns accepted and the attempt."""
    left = goal - pool.t
    last = pool.h >= left
    h = torch.where(last, left, pool.h)
    attempt = method.attempt(flow, Start(pool.x, pool.velocity, pool.t, h, pool.live))
    error = control.error(attempt.errors, pool, attempt.state, h)
    accepted = (error <= 1) & torch.isfinite(error)
    size, pool.last_error = control.next_size(h, error, accepted, pool.last_error, method.order)
    # A step cut short to end on a requested time says nothing against the longer one tried before.
    pool.h = torch.where(accepted & last, torch.maximum(pool.h, size), size)
    chosen = accepted[:, None, None]
    pool.x = torch.where(chosen, attempt.state, pool.x)
    pool.velocity = torch.where(chosen, attempt.velocity, pool.velocity)
    pool.speed = torch.linalg.vector_norm(pool.velocity, dim=-1).amax(dim=-1)
    pool.t = torch.where(accepted, torch.where(last, goal, pool.t + h), pool.t)
    return accepted, attempt


def seems_small(pool: Pool, steps: Tensor, way: Float[Tensor, " batch"] | None) -> Bool[Tensor, " batch"]:
    """Steps of which it is asked what keeps them small.

    They are much below the time scale of the flow, or, after many of them, lead nowhere although each is as long as it
    may be. Off the sphere ``way``, the distance from the start, takes the place of the scales that are not known; a
    state that rides on a slow motion has the speed of its errors, and there the time that has passed speaks.
    """
    old = steps >= RELAX_STEPS
    if way is not None:
        nowhere = (pool.h * pool.speed < SMALL_TURN * way) | (pool.h < SMALL_TURN * pool.t)
        return (old & nowhere) | pool.stiff
    return (pool.h * pool.unit < SMALL_STEP) | (old & (pool.h * pool.speed < SMALL_TURN)) | pool.stiff


def is_stiff(flow: AbstractFlow, pool: Pool) -> Bool[Tensor, " batch"]:
    """Whether the stability of an explicit method, and not its error, keeps the steps of trajectories small."""
    slopes = slope_matrix(flow, pool.x, pool.live, pool.t).nan_to_num()
    large = pool.h * torch.linalg.matrix_norm(slopes, ord=2) > (SMOOTH if pool.stiff else STIFF)
    if pool.stiff or not bool(large.any()):
        return large
    # Turning and growing is followed for its own sake; an implicit method gains where something decays.
    return large & (-pool.h * eigvals(slopes).real.amin(dim=-1) > DECAYS)
