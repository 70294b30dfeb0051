r"""Periodic motions: detection by returns to a section, shooting, Floquet exponents, and Lyapunov exponents.

Near a complex principal pair a +- i b of V all tokens merge and rotate in the principal invariant plane with period
2 pi / |b| (altafini2025 assumes V symmetric, where this cannot happen). A motion that never slows down and never
returns is reported with its largest Lyapunov exponent; a small residual alone decides nothing.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import Outcome, Result

from ..flows.base import AbstractSphereFlow
from ..flows.sphere import check_tokens, normalise
from ..integration.variational import flow_map, lyapunov_exponents

RETURNS = 5
TIME_SCATTER = 1e-3
POINT_SCATTER = 1e-3
FRAMES_PER_UNIT = 16


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LimitCycle(Result):
    """A periodic orbit through ``point``; Floquet exponents are logarithms of multipliers over the period.

    ``outcome`` is cycle, or out of steps where no orbit was closed; ``lyapunov`` is then the largest exponent of the
    motion (zero within its error for quasi-periodic motion, positive for chaos) and the period is NaN.
    """

    point: Float[Tensor, "n d"]
    period: float
    multipliers: Complex[Tensor, " directions"]
    residual: float
    outcome: Outcome
    lyapunov: float

    @property
    def exponents(self) -> Float[Tensor, " directions"]:
        """Floquet exponents: real parts of log(multiplier) / period, largest first; one of them is zero."""
        return (self.multipliers.abs().log() / self.period).sort(descending=True).values

    @property
    def stable(self) -> bool:
        """Whether every exponent but the one along the orbit is negative."""
        return self.outcome == Outcome.CYCLE and bool(self.exponents[1] < -1e-6)


def find_periods(flow: AbstractSphereFlow, x: Float[Tensor, "batch n d"]) -> Float[Tensor, " batch"]:
    """Return time of each state if its orbit closes, NaN otherwise.

    The orbit is sampled; returns are crossings of the hyperplane through its mean, normal to the velocity there. At
    least five returns must agree in time and place.
    """
    rate = float(flow.rate.max())
    frequency = torch.linalg.eigvals(flow.value_sum).imag.abs()
    slowest = torch.where(frequency > 1e-6 * rate, frequency, rate).min()
    span = (RETURNS + 2) * 2 * math.pi / float(slowest)
    count = min(20_000, max(256, int(FRAMES_PER_UNIT * span * rate / 2)))
    states, velocities, step = _sampled(flow, x, span, count)
    return torch.stack([_return_time(path, speed, step) for path, speed in zip(states, velocities, strict=True)])


def _sampled(flow: AbstractSphereFlow, x: Tensor, span: float, count: int) -> tuple[Tensor, Tensor, float]:
    """States and velocities on a regular grid of times, by fixed steps of a fourth-order method."""
    step = span / count
    states, velocities = [x], [flow.velocity(x)]
    for _ in range(count):
        x = _rk4(flow, x, step)
        states.append(x)
        velocities.append(flow.velocity(x))
    return torch.stack(states, 1), torch.stack(velocities, 1), step


def _rk4(flow: AbstractSphereFlow, x: Tensor, h: float) -> Tensor:
    k1 = flow.velocity(x)
    k2 = flow.velocity(normalise(x + h / 2 * k1))
    k3 = flow.velocity(normalise(x + h / 2 * k2))
    k4 = flow.velocity(normalise(x + h * k3))
    return normalise(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


def _return_time(path: Float[Tensor, "frames n d"], velocity: Float[Tensor, "frames n d"], step: float) -> Tensor:
    """Mean time between upward crossings of the section, NaN unless they agree."""
    flat, speed = path.flatten(1), velocity.flatten(1)
    half = len(flat) // 4  # leave out the beginning: the motion may still be settling
    mean = flat[half:].mean(dim=0)
    anchor = half + int((flat[half:] - mean).square().sum(dim=1).argmax())
    normal = speed[anchor]
    nothing = torch.tensor(torch.nan, dtype=path.dtype)
    if float(normal.norm()) < 1e-12:
        return nothing
    height = (flat[half:] - flat[anchor]) @ normal
    # A crossing counts near the anchor only: an orbit may cross the same plane elsewhere on its way.
    spread = torch.linalg.vector_norm(flat[half:] - mean, dim=1).max()
    up = ((height[:-1] < 0) & (height[1:] >= 0)).nonzero().squeeze(-1)
    theta = height[up] / (height[up] - height[up + 1])
    points = flat[half:][up] + theta.unsqueeze(-1) * (flat[half:][up + 1] - flat[half:][up])
    near = torch.linalg.vector_norm(points - flat[anchor], dim=1) < 0.2 * spread
    times, points = (up + theta)[near] * step, points[near]
    if len(times) < RETURNS:
        return nothing
    gaps = times.diff()
    place = torch.linalg.vector_norm(points - points.mean(dim=0), dim=1).max()
    agree = (gaps - gaps.mean()).abs().max() < TIME_SCATTER * gaps.mean() and place < POINT_SCATTER * 2 * spread
    return gaps.mean() if bool(agree) else nothing


def limit_cycle(
    flow: AbstractSphereFlow, x: object, *, period: float | None = None, max_steps: int = 30, tol: float = 1e-9
) -> LimitCycle:
    """The periodic orbit near a state, by shooting, with its Floquet exponents.

    Newton's method on the map "point and period to the state one period later": the mismatch must vanish, in the
    coordinates orthogonal to the velocity.

    Args:
        flow: the flow; constant weights, one instance.
        x: state (n, d) close to the orbit, such as the end of a long integration.
        period: first guess of the period; by default from returns to a section.
        max_steps: Newton steps.
        tol: length of the mismatch after one period.

    Returns:
        The orbit; its outcome says whether it was closed. Where it was not, the largest Lyapunov exponent.

    Cost: one integration of n (d - 1) + 1 tangent vectors over a period for each Newton step.
    """
    point = check_tokens(x, "x").double()
    flow = flow.to(torch.float64)
    guess = float(find_periods(flow, point.unsqueeze(0))[0]) if period is None else period
    if math.isfinite(guess):
        shot = _shoot(flow, point, guess, max_steps, tol)
        if shot is not None:
            return shot
    exponent = float(lyapunov_exponents(flow, point, count=1)[0])
    directions = point.shape[0] * (point.shape[1] - 1)
    nothing = torch.full((directions,), torch.nan, dtype=torch.complex128)
    return LimitCycle(point, math.nan, nothing, math.nan, Outcome.OUT_OF_STEPS, exponent)


def _shoot(flow: AbstractSphereFlow, point: Tensor, period: float, max_steps: int, tol: float) -> LimitCycle | None:
    for _ in range(max_steps):
        end, monodromy = flow_map(flow, point, period)
        basis, last = flow.basis(point), flow.velocity(end)
        gap = (end - point).flatten()
        inner = torch.block_diag(*basis)  # (n d) x n (d - 1)
        residual = float(torch.linalg.vector_norm(gap))
        if residual < tol:
            # The end lies within tol of the start, so that compression by the basis at the start is exact enough.
            multipliers = torch.linalg.eigvals(inner.mT @ monodromy @ inner)
            return LimitCycle(point, period, multipliers, residual, Outcome.CYCLE, 0.0)
        reduced = inner.mT @ monodromy @ inner - torch.eye(inner.shape[1], dtype=point.dtype)
        along = inner.mT @ last.flatten()
        phase = inner.mT @ flow.velocity(point).flatten()
        top = torch.cat([reduced, along.unsqueeze(1)], dim=1)
        system = torch.cat([top, torch.cat([phase, phase.new_zeros(1)]).unsqueeze(0)], dim=0)
        right = torch.cat([-(inner.mT @ gap), gap.new_zeros(1)])
        move = torch.linalg.lstsq(system, right.unsqueeze(1)).solution.squeeze(1)
        point = normalise(point + (inner @ move[:-1]).reshape(point.shape))
        period += float(move[-1])
        if not (period > 0 and bool(torch.isfinite(point).all())):
            return None
    return None
