"""Picard iteration, plain or damped."""

from __future__ import annotations

import dataclasses
from typing import final

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from ..maps.counted import CountedMap
from .base import AbstractEquilibriumSolver, States


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Picard(AbstractEquilibriumSolver[None]):
    """z <- z + damping (f(z) - z). One evaluation a step, no memory.

    Converges where every eigenvalue of 1 - damping + damping J lies inside the unit circle; damping below one turns
    eigenvalues of J far to the left of the unit circle (a period-two oscillation) back inside.
    """

    damping: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.damping <= 1:
            raise InvalidInput(f"damping must lie in (0, 1]; got {self.damping}.")

    def begin(self, fixed_point_map: CountedMap, z: States) -> None:
        """Picard remembers nothing."""
        return

    def propose(self, history: None, z: States, f: States, residual: States) -> States:
        """The damped step."""
        return f if self.damping == 1 else z + self.damping * residual
