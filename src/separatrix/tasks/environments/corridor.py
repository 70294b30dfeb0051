"""A corridor whose end has to be taken by what was seen at its beginning."""

from __future__ import annotations

from typing import Any, final

import numpy

from separatrix.core.arrays import require_integer
from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from .environment import Choices, ObservedArrays

FORWARD, LEFT, RIGHT = range(3)


@final
@suggest_options
class RecallCorridor(Described):
    """A cue says left or right, then a corridor of bare walls, then the turn: 1 if it was the right one, else 0.

    Observations are four numbers: cue left, cue right, wall, turn. Walking on goes one step; turning within the
    corridor does nothing, walking on at the turn does neither, and each such move takes time. The episode ends with the
    turn, or after three times the steps it needs. Who remembers nothing has 1/2 at most; who remembers has 1.

    Args:
        length: steps between cue and turn, 0 for none.

    Example:
        >>> corridor = RecallCorridor(2)
        >>> corridor.reset(seed=0)[0].tolist()
        [0.0, 1.0, 0.0, 0.0]
        >>> [corridor.step(action)[1] for action in (0, 0, 0, 2)]
        [0.0, 0.0, 0.0, 1.0]
    """

    def __init__(self, length: int = 4) -> None:
        self.length = require_integer(length, "length", at_least=0)
        self.action_space, self.observation_space = Choices(3), ObservedArrays((4,))
        self.limit = 3 * (self.length + 2)
        self._random = numpy.random.default_rng(0)
        self._place, self._time, self._answer = -1, 0, LEFT

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Draw a cue."""
        if seed is not None:
            self._random = numpy.random.default_rng(seed)
        self._place, self._time = 0, 0
        self._answer = int(self._random.integers(LEFT, RIGHT + 1))
        return self._seen(), {}

    def step(self, action: int) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Walk on or turn."""
        if self._place < 0:
            raise InvalidInput("step was called before reset, or after the end of the episode.")
        if action not in (FORWARD, LEFT, RIGHT):
            raise InvalidInput(f"action must be 0, 1 or 2; got {action!r}.")
        self._time += 1
        at_turn = self._place == self.length + 1
        over, right = at_turn and action != FORWARD, at_turn and action == self._answer
        if not at_turn and action == FORWARD:
            self._place += 1
        seen, late = self._seen(), self._time >= self.limit and not over
        if over or late:
            self._place = -1
        return seen, float(right), over, late, {}

    def _seen(self) -> numpy.ndarray:
        seen = numpy.zeros(4, dtype=numpy.float32)
        if self._place == 0:
            seen[self._answer - LEFT] = 1
        else:
            seen[3 if self._place == self.length + 1 else 2] = 1
        return seen
