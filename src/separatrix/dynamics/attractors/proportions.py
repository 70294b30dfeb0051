"""Small statistics of counts: Wilson intervals, unseen mass, the exact binomial comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from separatrix.core import InvalidInput, require_integer, require_number


def wilson_interval(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion; meaningful for small counts, 0 and ``total`` included.

    Example:
        >>> [round(end, 4) for end in wilson_interval(5, 10)]
        [0.2366, 0.7634]
    """
    if not 0 <= count <= total or total < 1:
        raise InvalidInput(f"count must lie between 0 and total >= 1; got {count} of {total}.")
    if not 0 < require_number(level, "level") < 1:
        raise InvalidInput(f"level must lie in (0, 1); got {level}.")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    p, spread = count / total, z * z / total
    middle = (p + spread / 2) / (1 + spread)
    half = z * math.sqrt(p * (1 - p) / total + spread / (4 * total)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def unseen_mass(counts: Iterable[int]) -> float:
    """Good-Turing estimate of the probability of labels that were not seen: labels seen once, over runs."""
    seen = [require_integer(count, "each of counts", at_least=0) for count in counts]
    total = sum(seen)
    return sum(1 for count in seen if count == 1) / total if total else 1.0


def equal_proportions_p(first: int, second: int) -> float:
    """Two-sided exact binomial p-value for two labels of the same runs being equally likely."""
    total = first + second
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, k) for k in range(max(first, second), total + 1))
    return min(1.0, 2 * tail / 2**total)
