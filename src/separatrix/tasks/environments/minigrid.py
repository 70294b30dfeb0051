"""MiniGrid's environments with observations in one row of numbers (extra ``rl``)."""

from __future__ import annotations

from typing import Any, Final, final

import numpy

from separatrix.core.errors import InvalidInput, MissingExtra

from .environment import Choices, Numbers

GRID_SHAPE: Final = (7, 7, 3)
"""What an agent sees: 7 by 7 fields, for each the numbers of object, colour and state."""
MISSION_WORDS: Final = (
    *("a", "and", "at", "ball", "blue", "box", "door", "end", "fetch", "get", "go", "goal", "green", "grey", "hallway"),
    *("key", "matching", "must", "object", "of", "open", "purple", "red", "the", "then", "to", "use", "yellow", "you"),
)
"""Words of the missions, numbered from 1; 0 is no word."""
LONGEST: Final = 16
"""Words of the longest mission, rounded up."""


def make_minigrid(name: str) -> _GridWorld:
    """An environment of MiniGrid; an observation is its image, entry by entry, and then the numbers of the mission's
    words.

    Args:
        name: as registered, with or without prefix and version: ``"MiniGrid-DoorKey-5x5-v0"`` or ``"DoorKey-5x5"``.

    Raises:
        MissingExtra: minigrid or gymnasium is not installed.
        InvalidInput: there is no such environment.
    """
    try:
        import gymnasium
        import minigrid  # noqa: F401  its import registers the environments
    except ImportError as error:
        raise MissingExtra("MiniGrid needs minigrid and gymnasium: install separatrix[rl].") from error
    full = name if name.startswith("MiniGrid-") else f"MiniGrid-{name}-v0"
    try:
        return _GridWorld(gymnasium.make(full))
    except gymnasium.error.Error as error:
        raise InvalidInput(f"name must be an environment of MiniGrid; got {name!r}: {error}") from error


@final
class _GridWorld:
    """The wrapped environment."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.action_space = Choices(int(inner.action_space.n))
        self.observation_space = Numbers((int(numpy.prod(GRID_SHAPE)) + LONGEST,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[numpy.ndarray, Any]:
        """Begin an episode."""
        seen, told = self.inner.reset(seed=seed, options=options)
        return flatten(seen), told

    def step(self, action: int) -> tuple[numpy.ndarray, Any, bool, bool, Any]:
        """Act."""
        seen, reward, over, late, told = self.inner.step(action)
        return flatten(seen), reward, over, late, told


def flatten(seen: dict[str, Any]) -> numpy.ndarray:
    """An observation of MiniGrid in one row."""
    words = seen["mission"].lower().replace(",", " ").split()
    unknown = sorted(set(words) - set(MISSION_WORDS))
    if unknown or len(words) > LONGEST:
        raise InvalidInput(f"mission must be of at most {LONGEST} known words; got {seen['mission']!r}.")
    row = numpy.zeros(int(numpy.prod(GRID_SHAPE)) + LONGEST, dtype=numpy.float32)
    row[:-LONGEST] = numpy.asarray(seen["image"]).reshape(-1)
    row[len(row) - LONGEST : len(row) - LONGEST + len(words)] = [MISSION_WORDS.index(word) + 1 for word in words]
    return row
