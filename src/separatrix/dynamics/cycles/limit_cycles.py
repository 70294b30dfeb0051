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

from separatrix.core import Outcome, Result, require_integer, require_number, require_positive

from ..flows.base import AbstractFlow, require_autonomous
from ..integration.integrate import find_returns
from ..integration.orbits.closing import certificate
from ..integration.orbits.floquet import Floquet
from ..integration.orbits.shooting import shoot
from ..integration.variational import check_state, lyapunov_exponents, state_after

SETTLING, BACK = 0.05, 1e-3
"""Share of the extent of a loop by which a state may miss itself after one period: of a stable cycle, of another."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LimitCycle(Result):
    """A periodic orbit through ``point``; Floquet exponents are logarithms of multipliers over the period.

    ``outcome`` is cycle, or out of steps where no orbit was closed; ``lyapunov`` is then the largest exponent of the
    motion (zero within its error for quasi-periodic motion, positive for chaos) and the period is NaN. The multiplier
    along the orbit comes first; ``margin`` is the estimated error of the others.
    """

    point: Float[Tensor, "n d"]
    period: float
    multipliers: Complex[Tensor, " directions"]
    residual: float
    outcome: Outcome
    lyapunov: float
    margin: float = 0.0

    @property
    def exponents(self) -> Float[Tensor, " directions"]:
        """Floquet exponents: real parts of log(multiplier) / period, largest first; one of them is zero."""
        return (self.multipliers.abs().log() / self.period).sort(descending=True).values

    @property
    def stable(self) -> bool:
        """Whether every multiplier but the one along the orbit lies inside the unit circle, beyond doubt."""
        if self.outcome != Outcome.CYCLE:
            return False
        return bool((self.multipliers[1:].abs() < 1 - self.margin).all())


def find_periods(flow: AbstractFlow, x: Float[Tensor, "batch n d"]) -> Float[Tensor, " batch"]:
    """Period of the cycle on which each state lies, NaN where it lies on none (see ``cycles_through``)."""
    periods = torch.full((len(x),), torch.nan, dtype=torch.float64, device=x.device)
    for place, floquet in cycles_through(flow, x).items():
        periods[place] = floquet.period
    return periods


def cycles_through(flow: AbstractFlow, x: Float[Tensor, "batch n d"]) -> dict[int, Floquet]:
    """The cycles on which states lie, by place in the batch.

    The state is followed until it crosses the hyperplane through itself, normal to its velocity, within a tenth of the
    extent of its loop; then the orbit is closed by Newton's method on point and period. What is found may be another
    orbit nearby (unstable ones are dense in a chaotic motion), so the state itself must be back after about one period:
    within 0.05 of the extent of the loop if the cycle is stable, since the state then settles on it, and within 0.001
    otherwise.

    Cost: at most 600 steps, and a few integrations over one period with n e tangent vectors.
    """
    double = flow.to(torch.float64)
    found = find_returns(double, x).cycles
    if not found:
        return {}
    places = torch.tensor(list(found), device=x.device)
    own, start = double.select((len(x),), places), x[places].double()
    guess = torch.tensor([floquet.period for floquet in found.values()], dtype=start.dtype, device=x.device)
    period, missed = _own_return(own, start, guess)
    kept = dict[int, Floquet]()
    for (place, item), own_period, miss in zip(found.items(), period.tolist(), missed.tolist(), strict=True):
        if miss < (SETTLING if item.stable else BACK):
            # The neighbour of a neutral orbit has another period than the orbit through the state.
            kept[place] = dataclasses.replace(item, period=own_period) if item.marginal else item
    return kept


def _own_return(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """When a state is nearest to itself again, about one period later, and how near.

    The distance is in units of the extent of the loop, which is seen at quarters of the period.
    """
    every = torch.arange(len(x), device=x.device).repeat(4)
    part = torch.tensor([0.25, 0.5, 0.75, 1.0], dtype=x.dtype, device=x.device).repeat_interleave(len(x))
    later, _ = state_after(flow.select((len(x),), every), x[every], part * period[every], rtol=1e-8, atol=1e-10)
    extent = torch.linalg.vector_norm((later - x[every]).flatten(1), dim=-1).reshape(4, -1).amax(dim=0)
    end, velocity = later[-len(x) :], flow.velocity(x)
    late = ((end - x) * velocity).flatten(1).sum(dim=-1) / velocity.square().flatten(1).sum(dim=-1)
    period = period - late.clamp(-0.1 * period, 0.1 * period)
    end, _ = state_after(flow, x, period, rtol=1e-8, atol=1e-10)
    missed = torch.linalg.vector_norm((end - x).flatten(1), dim=-1) / extent
    return period, missed.nan_to_num(nan=torch.inf)


def limit_cycle(
    flow: AbstractFlow, x: object, *, period: float | None = None, max_steps: int = 30, tol: float = 1e-9
) -> LimitCycle:
    """The periodic orbit near a state, stable or not, by shooting, with its Floquet multipliers.

    Newton's method on the map "point and period to the state one period later": the mismatch must vanish, in the
    coordinates orthogonal to the velocity.

    Args:
        flow: any flow; constant weights, one instance.
        x: state (n, d) close to the orbit, such as the end of a long integration.
        period: first guess of the period; by default from the first return to a section.
        max_steps: Newton steps.
        tol: length of the mismatch after one period, relative to the length of the state.

    Returns:
        The orbit; its outcome says whether it was closed. Where it was not, the largest Lyapunov exponent.

    Cost: one integration of n e tangent vectors over a period for each Newton step, e the dimension of a token's space.
    """
    point = check_state(flow, x).unsqueeze(0)
    require_autonomous(flow, "limit_cycle")
    require_integer(max_steps, "max_steps", at_least=1)
    require_number(tol, "tol", at_least=0)
    flow = flow.to(torch.float64)
    if period is None:
        guess = find_returns(flow, point).period
    else:
        require_positive(period, "period")
        guess = torch.tensor([period], dtype=torch.float64, device=point.device)
    if bool(torch.isfinite(guess).all()):
        closed = shoot(flow, point, guess, max_steps=max_steps, tol=tol)
        if bool(closed.found[0]):
            floquet = certificate(flow, closed)
            end, residual = floquet.period, floquet.residual
            return LimitCycle(closed.point[0], end, floquet.quotient, residual, Outcome.CYCLE, 0.0, floquet.margin)
    exponent = float(lyapunov_exponents(flow, point[0], n_exponents=1)[0])
    directions = point.shape[1] * flow.basis(point).shape[-1]
    nothing = torch.full((directions,), torch.nan, dtype=torch.complex128, device=point.device)
    return LimitCycle(point[0], math.nan, nothing, math.nan, Outcome.OUT_OF_STEPS, exponent)
