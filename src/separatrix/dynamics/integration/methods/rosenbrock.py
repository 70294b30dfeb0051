"""A Rosenbrock method for stiff flows."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.linear_systems import lu_factor_ex
from separatrix.core.names import suggest_options

from ...flows.base import AbstractFlow
from .base import AbstractMethod, Attempt, Start


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Rosenbrock(AbstractMethod):
    """The linearly implicit method RODAS: fourth order, stiffly accurate, third-order estimate.

    Stages solve (I - gamma h J) k_i = gamma (h f(x + sum_j a_ij k_j, t + c_i h) + sum_j c_ij k_j + d_i h^2 f_t) with
    the Jacobian J and the derivative f_t in time at the start of the step; the last k is the error. For flows with a
    fast contraction, where an explicit method takes steps of its time scale.

    Where the velocity depends on time, f_t is a difference of second order of velocities within the step: nobody is
    asked for a derivative in time, nor for velocities before the start.

    Cost: a dense Jacobian and its factorisation per step, O((n d)^3) per element; two more velocities with f_t.

    Source: Hairer, Wanner, Solving Ordinary Differential Equations II, section VI.3.
    """

    name: str = "rodas4"
    order: int = 4
    evaluations: int = 6
    lands: bool = True

    def attempt(self, flow: AbstractFlow, start: Start) -> Attempt:
        """Six linear systems with one factorisation."""
        x, velocity, t, h, live = start.x, start.velocity, start.t, start.h, start.live
        size = h.to(x.dtype)[:, None, None]
        system = _implicit(flow, x, GAMMA * size, live, t)
        drift = None if flow.autonomous else size**2 * _masked(_drift(flow, x, velocity, t, h), live)
        slope, y, ks = velocity, x, list[Tensor]()
        for row, mixed, node, share in zip(RODAS_A, RODAS_C, RODAS_NODES, RODAS_DRIFT, strict=True):
            if row:
                y = x + _combined(row, ks)
                slope = _masked(flow.velocity(flow.project(y), t + node * h), live)
            right = size * slope + _combined(mixed, ks) if mixed else size * slope
            if drift is not None and share:
                right = right + share * drift
            solution = torch.linalg.lu_solve(*system, GAMMA * right.flatten(1).unsqueeze(-1))
            ks.append(solution.squeeze(-1).view_as(x))
        state = flow.project(y + ks[-1])
        return Attempt(state, _masked(flow.velocity(state, t + h), live), ks[-1].unsqueeze(0), velocity.unsqueeze(0))


GAMMA = 0.25
_LAST = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)
RODAS_A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    _LAST,
    (*_LAST, 1.0),
)
RODAS_C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)
RODAS_NODES = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
RODAS_DRIFT = (0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0)

LOOK_AHEAD = 1e-3
"""Share of a step over which the derivative of the velocity in time is taken."""


def _drift(flow: AbstractFlow, x: Tensor, velocity: Tensor, t: Tensor, h: Tensor) -> Float[Tensor, "batch n d"]:
    """Derivative of the velocity in time, from velocities at t and at two times after it."""
    near, far = t + LOOK_AHEAD * h, t + 2 * LOOK_AHEAD * h
    a, b = (near - t).to(x.dtype)[:, None, None], (far - t).to(x.dtype)[:, None, None]  # as they were rounded
    first, second = (flow.velocity(x, near) - velocity) / a, (flow.velocity(x, far) - velocity) / b
    slope = (b * first - a * second) / (b - a)
    return torch.where((a > 0) & (b > a), slope, 0.0)  # steps that rounding swallows have no drift


def _combined(weights: tuple[float, ...], ks: list[Tensor]) -> Tensor:
    total = weights[0] * ks[0]
    for weight, k in zip(weights[1:], ks[1:], strict=True):
        total = total + weight * k
    return total


def _masked(velocity: Tensor, live: Tensor | None) -> Tensor:
    return velocity if live is None else velocity * live


def _implicit(flow: AbstractFlow, x: Tensor, size: Tensor, live: Tensor | None, t: Tensor) -> tuple[Tensor, Tensor]:
    """Factors of I - size J."""
    matrix = slope_matrix(flow, x, live, t)
    eye = torch.eye(matrix.shape[-1], dtype=x.dtype, device=x.device)
    return lu_factor_ex(eye - size * matrix)


def slope_matrix(
    flow: AbstractFlow, x: Tensor, live: Tensor | None, t: Tensor | None = None
) -> Float[Tensor, "batch k k"]:
    """Derivative of velocity(project(x)) at an admissible state (and time), in all coordinates."""
    basis = flow.basis(x)
    full = flow.ambient_jacobian(x, t).expand(*x.shape, *x.shape[-2:])
    full = torch.einsum("...iahb,...hbe,...hce->...iahc", full, basis, basis)
    if live is not None:
        full = full * live[..., None, None]
    return full.flatten(-4, -3).flatten(-2, -1)
