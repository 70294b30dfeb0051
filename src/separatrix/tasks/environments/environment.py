"""What an environment is: gymnasium's interface, without gymnasium."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, final, runtime_checkable

import numpy

from separatrix.core.result import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Choices(Result):
    """Actions 0 to n - 1, as gymnasium's ``Discrete``."""

    n: int
    """How many there are."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Numbers(Result):
    """Arrays of one shape, as gymnasium's ``Box``."""

    shape: tuple[int, ...]
    """Of each."""


@runtime_checkable
class Environment(Protocol):
    """Gymnasium's interface with arrays as observations and numbered actions; any of its environments of that kind
    fits, whether or not it comes from there."""

    @property
    def action_space(self) -> Any:
        """Has ``n``, the number of actions."""

    @property
    def observation_space(self) -> Any:
        """Has ``shape``, that of an observation."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[numpy.ndarray, Any]:
        """Begin an episode: the first observation, and a dictionary."""

    def step(self, action: int) -> tuple[numpy.ndarray, Any, bool, bool, Any]:
        """Observation, reward, whether a goal or failure ended the episode, whether a limit did, and a dictionary."""
