"""What the callers of the compiled loop need of it."""

from __future__ import annotations

from separatrix.core.arithmetic.keeping import has_code

from .carry import carry
from .layout import (
    ANCHORED,
    BROKEN,
    CODE,
    CROSSING,
    ERROR,
    EXTENT,
    HEIGHT,
    LIMIT,
    MERGE_VECTORS,
    N_COUNTS,
    N_NUMBERS,
    OVER,
    REJECTED,
    RESTING,
    ROWS,
    SINCE,
    SIZE,
    SLOW,
    SMALL,
    SPEED,
    STEPS,
    THRESHOLD,
    TIME,
    UNIT,
    UNTIL,
    VECTOR_BYTES,
    WATCH,
    Places,
    Rules,
    places,
)  # fmt: skip

__all__ = [
    "ANCHORED", "BROKEN", "CODE", "CROSSING", "ERROR", "EXTENT", "HEIGHT", "LIMIT", "MERGE_VECTORS", "N_COUNTS",
    "N_NUMBERS", "OVER", "REJECTED", "RESTING", "ROWS", "SINCE", "SIZE", "SLOW", "SMALL", "SPEED", "STEPS", "THRESHOLD",
    "TIME", "UNIT", "UNTIL", "VECTOR_BYTES", "WATCH", "Places", "Rules", "carry", "has_code", "places",
]  # fmt: skip
