"""How long a cell may run and how much memory it may hold before it is stopped and set aside."""

from __future__ import annotations

import dataclasses
import os
from typing import final

from separatrix.core.names import suggest_options
from separatrix.core.scalars import require_positive

from .scales import require_scale

USUAL_SECONDS = {"smoke": 900.0, "laptop": 6 * 3600.0, "paper": 7 * 86400.0}
"""By scale, how long a cell may run unless its experiment or ``--cell-timeout`` says otherwise: far above what cells
take, so that only one that hangs meets it."""
USUAL_SHARE = 0.9
"""Share of the machine's memory that one cell may hold unless something else is said."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of one cell; ``None`` leaves it open.

    Args:
        seconds: how long it may run.
        memory: bytes its process may hold (where the system tells: Linux).
    """

    seconds: float | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "memory"):
            if getattr(self, name) is not None:
                require_positive(getattr(self, name), name)

    def or_else(self, other: Limits) -> Limits:
        """These limits, and the other's where these are open."""
        return Limits(
            self.seconds if self.seconds is not None else other.seconds,
            self.memory if self.memory is not None else other.memory,
        )


OPEN = Limits()
"""No limit of its own."""


def usual_limits(scale: str) -> Limits:
    """Limits that stop only what hangs, or takes the whole machine."""
    return Limits(USUAL_SECONDS[require_scale(scale)], USUAL_SHARE * machine_memory() or None)


def machine_memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
