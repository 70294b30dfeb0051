"""What a step is: the interface of every method, and the attempt it makes."""

from __future__ import annotations

import abc
import dataclasses
from typing import final

from jaxtyping import Float
from torch import Tensor

from separatrix.core.described import Described

from ...flows.base import AbstractFlow


@final
@dataclasses.dataclass(frozen=True)
class Start:
    """From where, and how far, each trajectory is to be stepped; rows that are not ``live`` stay."""

    x: Float[Tensor, "batch n d"]
    velocity: Float[Tensor, "batch n d"]
    t: Float[Tensor, " batch"]
    h: Float[Tensor, " batch"]
    live: Float[Tensor, "batch n 1"] | None = None


@final
@dataclasses.dataclass(frozen=True)
class Attempt:
    """A proposed state with its velocity, the error estimates, and the slopes on the way, the first one first."""

    state: Float[Tensor, "batch n d"]
    velocity: Float[Tensor, "batch n d"]
    errors: Float[Tensor, "estimates batch n d"]
    slopes: Float[Tensor, "stages batch n d"]

    def part(self, chosen: Tensor) -> Attempt:
        """Of some of the trajectories."""
        return Attempt(self.state[chosen], self.velocity[chosen], self.errors[:, chosen], self.slopes[:, chosen])


class AbstractMethod(Described, abc.ABC):
    """One way to make a step of many trajectories, each with its own size."""

    name: str
    order: int
    evaluations: int
    """Velocities of a step."""
    lands: bool
    """Whether steps must end on the times that are asked for, because nothing is known in between."""

    @abc.abstractmethod
    def attempt(self, flow: AbstractFlow, start: Start) -> Attempt:
        """The state after a step from ``start``."""

    def between(self, x: Float[Tensor, "batch n d"], attempt: Attempt, h: Tensor, theta: Tensor) -> Tensor:
        """The state at a fraction theta of an accepted step, before projection. The default is a cubic polynomial."""
        return cubic(x, attempt, h, theta)


def cubic(x: Tensor, attempt: Attempt, h: Tensor, theta: Tensor) -> Float[Tensor, "batch n d"]:
    """The cubic polynomial through both ends of a step with their velocities."""
    s, size = theta[:, None, None], h[:, None, None]
    a, b = x.double(), attempt.state.double()
    da, db = size * attempt.slopes[0].double(), size * attempt.velocity.double()
    return (1 + 2 * s) * (1 - s) ** 2 * a + s * (1 - s) ** 2 * da + s**2 * (3 - 2 * s) * b + s**2 * (s - 1) * db
