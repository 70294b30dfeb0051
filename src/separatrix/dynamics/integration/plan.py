"""How trajectories are followed, and what ends them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, final

import torch
from torch import Tensor

from ..flows.base import AbstractFlow
from .finishing import AbstractFinisher
from .merging import Merging
from .methods.base import AbstractMethod
from .methods.control import AbstractControl
from .orbits.returns import Returns
from .stopping import AbstractStop

if TYPE_CHECKING:
    from .orbits.closing import Orbits

Closer: TypeAlias = "Callable[[AbstractFlow, Tensor, Tensor, Tensor | None], Orbits]"
"""Flow, states, guesses of their periods and sizes to closed orbits with the certificates of those found."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The objects of one integration; those that are None are not used. A plan is equal to itself alone."""

    method: AbstractMethod
    control: AbstractControl
    stop: AbstractStop
    max_steps: int
    finisher: AbstractFinisher | None = None
    merging: Merging | None = None
    returns: Returns | None = None
    closer: Closer | None = None
    stiff: AbstractMethod | None = None
    transient: torch.dtype = torch.float64
    jump: float = 0.0
    """How far a trajectory with frames to come may be moved when it is finished."""
    any_cycle: bool = False
    """Whether a closed orbit ends a trajectory even if it is not stable."""
    own_length: bool = False
    """Whether absolute tolerances are in units of each trajectory's own length, where that is below one."""
