"""What an integration returns, and the presets that say how carefully it goes."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Outcome, Result, unknown_name

from .tableau import TSIT5, Tableau


@final
@dataclasses.dataclass(frozen=True)
class Preset:
    """How carefully a trajectory is followed.

    ``early`` is the speed, in units of the rate of the flow, at which the first attempt is made to finish by Newton's
    method; an attempt succeeds only if a stable equilibrium lies beside the state. ``transient`` is the precision
    down to a speed of 1e-3; the rest, and everything that decides, is float64.
    """

    name: str
    rtol: float
    tableau: Tableau
    transient: torch.dtype
    early: float


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("fast", 2e-2, TSIT5, torch.float32, 1e-2),
        Preset("default", 1e-3, TSIT5, torch.float32, 1e-2),
        Preset("reference", 1e-5, TSIT5, torch.float64, 1e-6),
    )
}
"""``fast`` for proportions, ``default`` for what an individual start does, ``reference`` to judge the others."""


def find_preset(name: str) -> Preset:
    """A preset by name."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Trajectory(Result):
    """Where each trajectory went.

    ``final`` is the equilibrium that was reached (``outcome`` converged) or the last state; ``residual`` the speed of
    its fastest token and ``time`` when it was reached. ``times`` and ``states`` hold the frames that were asked for.
    ``saddles`` counts equilibria with unstable directions that were visited and left.
    """

    final: Float[Tensor, "*batch n d"]
    outcome: Int[Tensor, "*batch"]
    residual: Float[Tensor, "*batch"]
    time: Float[Tensor, "*batch"]
    steps: Int[Tensor, "*batch"]
    rejected_steps: Int[Tensor, "*batch"]
    evaluations: Int[Tensor, "*batch"]
    saddles: Int[Tensor, "*batch"]
    times: Float[Tensor, " frames"] | None = None
    states: Float[Tensor, "*batch frames n d"] | None = None

    @property
    def converged(self) -> Tensor:
        """True where an equilibrium was reached."""
        return self.outcome == Outcome.CONVERGED

    @property
    def ok(self) -> bool:
        """Whether every trajectory reached an equilibrium."""
        return bool(self.converged.all())
