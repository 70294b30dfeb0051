"""The three sizes at which an experiment is run."""

from __future__ import annotations

from typing import Literal, TypeAlias

from separatrix.core.names import choose

Scale: TypeAlias = Literal["smoke", "laptop", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "paper")
"""Seconds, minutes on two cores, and the size of the document, in ascending order."""


def require_scale(given: object, kind: str = "scale") -> str:
    """``given`` if it is the name of a scale; ``kind`` is what the error calls it."""
    return choose(kind, given, SCALES)
