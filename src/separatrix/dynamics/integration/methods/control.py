"""Which steps are good enough, and how large the next one is."""

from __future__ import annotations

import abc
import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.described import Described
from separatrix.core.names import suggest_options

from ...flows.base import AbstractFlow
from ..pool import Pool

SAFETY, SHRINK = 0.9, 0.2
ATOL = {torch.float32: 1e-6, torch.float64: 1e-10}
"""Absolute error on the sphere per unit of time, in units of the rate."""

SMALLEST_STEP = 1e-12
"""Steps on the sphere below this make no progress, in units of 1 / rate."""

KEPT = 10.0
"""Allowed errors of a step that stay alive around an equilibrium: steps grow to the limit of stability, where little of
the error of one step is gone after the next."""


class AbstractControl(Described, abc.ABC):
    """How errors are measured and steps chosen; the tolerances are its fields."""

    @abc.abstractmethod
    def error(
        self, estimates: Float[Tensor, "estimates batch n d"], pool: Pool, proposal: Tensor, h: Tensor
    ) -> Float[Tensor, " batch"]:
        """Estimated error of a step over what is allowed; at most 1 is good enough."""

    @abc.abstractmethod
    def next_size(
        self, h: Tensor, error: Tensor, accepted: Tensor, last: Tensor, order: int
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Size of the next step, and the error to remember."""

    @abc.abstractmethod
    def first_size(
        self, flow: AbstractFlow, x: Tensor, velocity: Tensor, unit: Tensor, length: Tensor, order: int
    ) -> Float[Tensor, " batch"]:
        """Size of the first step, in a flow with a unit of speed and a unit of length for each element."""

    @abc.abstractmethod
    def resolution(self, pool: Pool) -> Float[Tensor, " batch"]:
        """Distance below which two states are one, for what is known about them."""

    @abc.abstractmethod
    def smallest(self, pool: Pool) -> Float[Tensor, " batch"]:
        """Steps below this make no progress."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class DisplacementControl(AbstractControl):
    """For unit tokens: the error of a step is judged against the displacement of that step.

        err = max_i |e_i| / (rtol min(h |f|, 0.3) + atol h)

    The length of a token is always one. With the usual norm an explicit method sits at its stability limit close to
    rest, and the speed never falls below rtol times the stiffest rate. ``atol`` is in units of the rate of the flow.
    """

    rtol: float
    atol: float | None = None
    largest_displacement: float = 0.3
    first_displacement: float = 0.05
    grow: float = 4.0

    def error(
        self, estimates: Float[Tensor, "estimates batch n d"], pool: Pool, proposal: Tensor, h: Tensor
    ) -> Float[Tensor, " batch"]:
        """Largest token error over what its displacement allows."""
        largest = combined(torch.linalg.vector_norm(estimates, dim=-1).amax(dim=-1).double())
        atol = ATOL[pool.x.dtype] if self.atol is None else self.atol
        allowed = self.rtol * (h * pool.speed.double()).clamp_max(self.largest_displacement) + atol * pool.unit * h
        return largest / allowed.clamp_min(1e-300)

    def next_size(
        self, h: Tensor, error: Tensor, accepted: Tensor, last: Tensor, order: int
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Proportional-integral control: the error of the step before damps the change of size."""
        safe = torch.nan_to_num(error, nan=1e10, posinf=1e10).clamp(1e-10, 1e10)
        factor = (SAFETY * safe ** (-0.7 / order) * last ** (0.4 / order)).clamp(SHRINK, self.grow)
        factor = torch.where(accepted, factor, (SAFETY * safe ** (-1 / order)).clamp(SHRINK, 1.0))
        return h * factor, torch.where(accepted, safe.clamp_min(1e-4), last)

    def first_size(
        self, flow: AbstractFlow, x: Tensor, velocity: Tensor, unit: Tensor, length: Tensor, order: int
    ) -> Float[Tensor, " batch"]:
        """Turns no token by more than about 0.05 rad."""
        speed = torch.linalg.vector_norm(velocity, dim=-1).amax(dim=-1).double()
        return self.first_displacement / torch.maximum(speed, 0.1 * unit)

    def resolution(self, pool: Pool) -> Float[Tensor, " batch"]:
        """Errors shrink with the way of a step, so only rounding remains."""
        return torch.full_like(pool.t, ATOL[pool.x.dtype])

    def smallest(self, pool: Pool) -> Float[Tensor, " batch"]:
        """A millionth of a millionth of the time scale of the flow."""
        return SMALLEST_STEP / pool.unit


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ScaledControl(AbstractControl):
    """For states without constraint: root mean square of the errors over atol + rtol |x|, entry by entry.

    ``atol`` is in units of the length that the trajectory is given, which is one unless nobody has said what is small.

    Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, section II.4.
    """

    rtol: float
    atol: float
    grow: float = 10.0

    def error(
        self, estimates: Float[Tensor, "estimates batch n d"], pool: Pool, proposal: Tensor, h: Tensor
    ) -> Float[Tensor, " batch"]:
        """Root mean square over all entries of a state."""
        scale = self.atol * pool.length[:, None, None] + self.rtol * torch.maximum(pool.x.abs(), proposal.abs())
        return combined((estimates / scale).flatten(2).square().mean(dim=-1).sqrt().double())

    def next_size(
        self, h: Tensor, error: Tensor, accepted: Tensor, last: Tensor, order: int
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Proportional control."""
        safe = torch.nan_to_num(error, nan=torch.inf).clamp_min(1e-300)
        factor = SAFETY * safe ** (-1 / order)
        return h * torch.where(accepted, factor.clamp(SHRINK, self.grow), factor.clamp(SHRINK, 1.0)), last

    def first_size(
        self, flow: AbstractFlow, x: Tensor, velocity: Tensor, unit: Tensor, length: Tensor, order: int
    ) -> Float[Tensor, " batch"]:
        """From the sizes of the state, of its velocity, and of the change of the velocity along it."""
        scale = self.atol * length[:, None, None] + self.rtol * x.abs()

        def size(values: Tensor) -> Tensor:
            return (values / scale).flatten(1).square().mean(dim=-1).sqrt().double()

        speed = size(velocity)
        slow = (size(x) < 1e-5) | (speed < 1e-5)
        guess = torch.where(slow, 1e-6, 0.01 * size(x) / speed.clamp_min(1e-300))
        ahead = flow.project(x + guess[:, None, None].to(x.dtype) * velocity)
        most = torch.maximum(speed, size(flow.velocity(ahead, guess) - velocity) / guess)
        second = torch.where(
            most <= 1e-15, (guess * 1e-3).clamp_min(1e-6), (0.01 / most.clamp_min(1e-300)) ** (1 / order)
        )
        return torch.nan_to_num(torch.minimum(100 * guess, second), nan=1e-6)

    def resolution(self, pool: Pool) -> Float[Tensor, " batch"]:
        """What is left of the errors that each step is allowed: a state at rest is not known better."""
        return KEPT * (self.atol * pool.length + self.rtol * pool.x.abs().flatten(1).amax(dim=-1))

    def smallest(self, pool: Pool) -> Float[Tensor, " batch"]:
        """Steps that rounding swallows."""
        return 1e-15 * pool.t.clamp_min(1e-280)


def combined(norms: Float[Tensor, "estimates batch"]) -> Float[Tensor, " batch"]:
    """One estimate as it is; of two, the higher order one tempered by the lower (as in DOP853)."""
    if len(norms) == 1:
        return norms[0]
    high, low = norms[0], norms[1]
    return high.square() / (high.square() + 0.01 * low.square()).clamp_min(1e-300).sqrt()
