"""What an integration returns."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Outcome, Result

from .orbits.floquet import Floquet


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Trajectory(Result):
    """Where each trajectory went.

    ``final`` is the equilibrium that was reached (``outcome`` converged) or the last state; ``residual`` the speed of
    its fastest token and ``time`` when it was reached. ``times`` and ``states`` hold the frames that were asked for.
    ``saddles`` counts equilibria with unstable directions that were visited and left, ``returns`` the times that a
    motion came back near a former state and was looked at, without lying on a cycle that attracts it or falling to an
    equilibrium: one that is out of steps with returns is quasi-periodic, chaotic, or drifts slower than can be seen.
    ``cycles`` holds, by position
    in the flattened batch, the certificate of every trajectory whose outcome is cycle; ``final`` then lies on the
    orbit. ``backend`` says what made the ordinary steps: ``"torch"``, or ``"numba"`` for the compiled loop (see
    ``separatrix.core.use_backend``), with which attempts to finish begin later, at a relative speed of 1e-3.
    """

    final: Float[Tensor, "*batch n d"]
    outcome: Int[Tensor, "*batch"]
    residual: Float[Tensor, "*batch"]
    time: Float[Tensor, "*batch"]
    steps: Int[Tensor, "*batch"]
    rejected_steps: Int[Tensor, "*batch"]
    evaluations: Int[Tensor, "*batch"]
    saddles: Int[Tensor, "*batch"]
    returns: Int[Tensor, "*batch"]
    times: Float[Tensor, " frames"] | None = None
    states: Float[Tensor, "*batch frames n d"] | None = None
    cycles: dict[int, Floquet] = dataclasses.field(default_factory=dict, repr=False)
    backend: str = "torch"

    @property
    def converged(self) -> Tensor:
        """True where an equilibrium was reached."""
        return self.outcome == Outcome.CONVERGED

    @property
    def period(self) -> Float[Tensor, "*batch"]:
        """Periods of the trajectories that end in a stable cycle; NaN elsewhere."""
        periods = torch.full_like(self.time, torch.nan).reshape(-1)
        for place, floquet in self.cycles.items():
            periods[place] = floquet.period
        return periods.reshape(self.time.shape)

    @property
    def ok(self) -> bool:
        """Whether every trajectory arrived: at an equilibrium, in a cycle, or at the time that was asked for."""
        good = (self.outcome == Outcome.CONVERGED) | (self.outcome == Outcome.CYCLE)
        return bool((good | (self.outcome == Outcome.COMPLETED)).all())
