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
from .report import ATTEMPTED, ENDED, EVALUATIONS, N_REAL, N_WHOLE, OUTCOME, REFUSED, RESIDUAL, RETURNS, SADDLES, report

__all__ = [
    "ANCHORED", "ATTEMPTED", "BROKEN", "CODE", "CROSSING", "ENDED", "ERROR", "EVALUATIONS", "EXTENT", "HEIGHT",
    "LIMIT", "MERGE_VECTORS", "N_COUNTS", "N_NUMBERS", "N_REAL", "N_WHOLE", "OUTCOME", "OVER", "REFUSED", "REJECTED",
    "RESIDUAL", "RESTING", "RETURNS", "ROWS", "SADDLES", "SINCE", "SIZE", "SLOW", "SMALL", "SPEED", "STEPS",
    "THRESHOLD", "TIME", "UNIT", "UNTIL", "VECTOR_BYTES", "WATCH", "Places", "Rules", "carry", "has_code", "places",
    "report",
]  # fmt: skip
