"""Flow maps with their derivatives, and Lyapunov exponents, by integrating tangent vectors along the motion."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import require_integer, require_positive

from ..flows.base import AbstractSphereFlow
from ..flows.sphere import check_tokens, normalise

STEPS_PER_UNIT = 16
"""Fixed steps of the fourth-order method per unit of 1 / rate."""


def flow_map(
    flow: AbstractSphereFlow, x: Float[Tensor, "n d"], duration: float
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m m"]]:
    """State after ``duration`` and the derivative of that state in the first one, (n d) x (n d).

    Both are integrated together by a fixed-step fourth-order method, with the tangent vectors in their own
    coordinates; directions off the sphere are not meaningful.
    """
    n, d = x.shape
    tangents = torch.eye(n * d, dtype=x.dtype, device=x.device).reshape(n * d, n, d)
    end, moved = transport(flow, x, tangents, duration)
    return end, moved.flatten(1).mT


def transport(
    flow: AbstractSphereFlow, x: Float[Tensor, "n d"], tangents: Float[Tensor, "k n d"], duration: float
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k n d"]]:
    """State and tangent vectors after ``duration``."""
    count = max(8, math.ceil(STEPS_PER_UNIT * duration * float(flow.rate.max())))
    h = duration / count
    for _ in range(count):
        k1, j1 = _field(flow, x, tangents)
        k2, j2 = _field(flow, x + h / 2 * k1, tangents + h / 2 * j1)
        k3, j3 = _field(flow, x + h / 2 * k2, tangents + h / 2 * j2)
        k4, j4 = _field(flow, x + h * k3, tangents + h * j3)
        x = normalise(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        tangents = tangents + h / 6 * (j1 + 2 * j2 + 2 * j3 + j4)
    return x, tangents


def _field(flow: AbstractSphereFlow, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Velocity and its derivative in the directions u, from one evaluation of the pull."""
    pull, dpull = flow.pull_and_jvp(x, u)
    gamma = (x * pull).sum(dim=-1, keepdim=True)
    inner = (x * dpull).sum(dim=-1, keepdim=True) + (u * pull).sum(dim=-1, keepdim=True)
    return pull - gamma * x, dpull - gamma * u - inner * x


def lyapunov_exponents(
    flow: AbstractSphereFlow,
    x: object,
    *,
    count: int = 1,
    duration: float | None = None,
    interval: float | None = None,
) -> Float[Tensor, " count"]:
    """The largest Lyapunov exponents of the motion from x, by re-orthogonalising tangent vectors at intervals.

    Args:
        flow: the flow; constant weights, one instance.
        x: state (n, d); the transient should be over.
        count: how many exponents.
        duration: averaging time, by default 50 over the rate of the flow.
        interval: time between two orthogonalisations, by default 1 over the rate.
    """
    point = check_tokens(x, "x").double()
    flow = flow.to(torch.float64)
    n, d = point.shape
    count = min(require_integer(count, "count", at_least=1), n * (d - 1))
    rate = float(flow.rate.max())
    duration, interval = duration or 50 / rate, interval or 1 / rate
    require_positive(duration, "duration")
    require_positive(interval, "interval")
    tangents = torch.block_diag(*flow.basis(point)).mT[:count].reshape(count, n, d)
    total = torch.zeros(count, dtype=point.dtype, device=point.device)
    rounds = max(1, round(duration / interval))
    for _ in range(rounds):
        point, tangents = transport(flow, point, tangents, interval)
        q, r = torch.linalg.qr(tangents.flatten(1).mT)
        total = total + r.diagonal().abs().log()
        tangents = q.mT.reshape(count, n, d)
    return (total / (rounds * interval)).sort(descending=True).values
