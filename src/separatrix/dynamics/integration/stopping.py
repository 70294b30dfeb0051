"""When a trajectory ends: at rest, or at a time."""

from __future__ import annotations

import abc
import dataclasses
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from separatrix.core import Outcome

from .pool import Pool

REARM = 1e-3
"""Relative speed at which a trajectory counts as having left a saddle."""

REARMED = 0.3 * REARM
"""Relative speed at which such a trajectory is next attempted to be finished."""

STALLED = 1e-4
"""Fraction of the tolerance below which a state that has no equilibrium beside it is given up."""


class AbstractStop(abc.ABC):
    """Which trajectories need attention after a step, and what the end of time means."""

    at_limit: Outcome
    """The outcome of a trajectory that reaches its last time."""
    sought: bool
    """Whether anything but the last time may end a trajectory."""
    first_threshold: float
    """Relative speed at which the first attempt to finish is due."""
    tol: float
    """Relative speed below which a trajectory is at rest."""

    @abc.abstractmethod
    def resting(self, pool: Pool) -> Bool[Tensor, " batch"]:
        """Trajectories that may have arrived."""

    @abc.abstractmethod
    def rearm(self, pool: Pool) -> None:
        """Let trajectories that have left a saddle be finished again."""


@final
@dataclasses.dataclass(frozen=True)
class Rest(AbstractStop):
    """A trajectory ends where it rests: its relative speed is below ``tol``.

    Attempts to finish earlier, by Newton's method, begin at the relative speed ``early``; without a finisher nothing
    is attempted and ``early`` is ``tol``.
    """

    tol: float
    early: float
    at_limit: Outcome = Outcome.OUT_OF_STEPS
    sought: bool = True

    @property
    def first_threshold(self) -> float:  # type: ignore[override]
        """The larger of both."""
        return max(self.early, self.tol)

    def resting(self, pool: Pool) -> Bool[Tensor, " batch"]:
        """Slower than the threshold of the trajectory, or not moving at all."""
        return (pool.ratio < pool.threshold) | (pool.speed == 0)

    def rearm(self, pool: Pool) -> None:
        """Thresholds of zero go up again once the trajectory is fast."""
        armed = (pool.threshold == 0) & (pool.ratio > REARM)
        pool.threshold = torch.where(armed, REARMED, pool.threshold)


@final
@dataclasses.dataclass(frozen=True)
class Until(AbstractStop):
    """A trajectory ends at its last time, wherever it is."""

    at_limit: Outcome = Outcome.COMPLETED
    sought: bool = False
    first_threshold: float = 0.0
    tol: float = 0.0

    def resting(self, pool: Pool) -> Bool[Tensor, " batch"]:
        """None."""
        return torch.zeros(len(pool.index), dtype=torch.bool, device=pool.x.device)

    def rearm(self, pool: Pool) -> None:
        """Nothing to do."""
