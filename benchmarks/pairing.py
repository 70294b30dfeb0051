"""Which tolerance of a peer is compared with us: the one that gives it our error.

Times of two methods say something only at equal error, and equal tolerances give errors that differ tenfold, to either
side. So a peer goes through a ladder of tolerances, loosest first, until its error is at most ours. Of the last two
rungs the one counts whose error is nearer to ours, if it lies within a factor of ``NEAR``. If neither does, the looser
of the two counts, which is the faster one: the doubt is the peer's. A peer that never becomes as accurate as we are
(float32) counts with the rung at which it is most accurate, one that is more accurate already on the first rung with
that. The rule is the same for every peer, whichever of the two it favours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

NEAR = 1.5
"""Errors are called equal within this factor."""


def ladder(loosest: float, finest: float, per_decade: int = 4) -> list[float]:
    """Tolerances from one power of ten to another."""
    first, last = (round(-math.log10(end) * per_decade) for end in (loosest, finest))
    return [10 ** (-k / per_decade) for k in range(first, last + 1)]


@dataclasses.dataclass(frozen=True)
class Pair:
    """The tolerance of a peer, its error, and how that compares with ours."""

    tolerance: float
    error: float
    how: str
    """``equal``, ``looser``, ``never as accurate`` or ``more accurate at once``."""

    def beside(self, ours: float) -> str:
        """Both errors, in words."""
        doubt = "" if self.how == "equal" else f" ({self.how})"
        return f"error {ours:.1e}, theirs {self.error:.1e}{doubt}"


def paired(error_at: Callable[[float], float], ours: float, rungs: Sequence[float]) -> Pair:
    """The rung that is compared with us; see the head of this file.

    Args:
        error_at: error of the peer at a tolerance; not a number counts as infinite.
        ours: our error.
        rungs: tolerances, loosest first.
    """
    seen: list[tuple[float, float]] = []
    for rung in rungs:
        error = error_at(rung)
        seen.append((rung, error if error == error else math.inf))
        if error <= ours:
            return _of_last(seen, ours)
    return Pair(*min(seen, key=lambda pair: pair[1]), "never as accurate")


def _of_last(seen: Sequence[tuple[float, float]], ours: float) -> Pair:
    """Of the last two rungs, between which our error lies."""
    near = [pair for pair in seen[-2:] if ours / NEAR <= pair[1] <= ours * NEAR]
    if near:
        return Pair(*min(near, key=lambda pair: abs(math.log(pair[1] / ours))), "equal")
    return Pair(*seen[-1], "more accurate at once") if len(seen) == 1 else Pair(*seen[-2], "looser")
