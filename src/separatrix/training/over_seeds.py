"""What several seeds say: mean, median, spread, and 95 % intervals by Student's t."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import final

from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Spread(Result):
    """The values of one quantity over seeds. A mean far from the median tells of seeds that went astray."""

    n: int
    mean: float
    median: float
    std: float
    """Sample standard deviation; NaN for a single seed."""
    least: float
    greatest: float
    half_width: float
    """Half of the 95 % interval of the mean; infinite for a single seed."""

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width


def spread(values: Sequence[float]) -> Spread:
    """Statistics over seeds; values that are not finite are refused, since a mean would hide them.

    Example:
        >>> round(spread([1.0, 2.0, 3.0]).half_width, 3)
        2.484
    """
    numbers = [float(value) for value in values]
    if not numbers or not all(math.isfinite(number) for number in numbers):
        raise InvalidInput(f"values must be finite numbers, at least one; got {numbers}.")
    n, mean = len(numbers), statistics.fmean(numbers)
    std = statistics.stdev(numbers) if n > 1 else math.nan
    half_width = _student(n - 1) * std / math.sqrt(n) if n > 1 else math.inf
    return Spread(n, mean, statistics.median(numbers), std, min(numbers), max(numbers), half_width)


def paired_difference(first: Sequence[float], second: Sequence[float]) -> Spread:
    """``first - second`` seed by seed: what both share (data order, other layers) drops out."""
    if len(first) != len(second):
        raise InvalidInput(f"both must have the same seeds; got {len(first)} and {len(second)} values.")
    return spread([a - b for a, b in zip(first, second, strict=True)])


def _student(degrees: int) -> float:
    from scipy import stats

    return float(stats.t.ppf(0.975, degrees))
