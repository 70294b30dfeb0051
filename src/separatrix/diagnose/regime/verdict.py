"""Rich, lazy or in between: the thresholds, and the sentence that goes with each verdict.

Each of three measures says lazy below its first threshold and rich above its second. The verdict is what at least two
of them say; otherwise it is in between. The thresholds are conventions, chosen on networks trained to equal loss on
handwritten digits (experiment ``linear-digits-regime``), where they separate the two ends of the scale.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final


@final
@dataclasses.dataclass(frozen=True)
class Threshold:
    """Lazy below ``lazy_below``, rich above ``rich_above``, undecided between."""

    lazy_below: float
    rich_above: float

    def vote(self, value: float) -> str:
        """What one measure says; an undefined measure says nothing."""
        if math.isnan(value):
            return "no say"
        if value < self.lazy_below:
            return "lazy"
        return "rich" if value > self.rich_above else "in between"


KERNEL_CHANGE = Threshold(0.2, 0.5)
FEATURE_CHANGE = Threshold(0.05, 0.15)
LINEARISED_ERROR = Threshold(0.2, 0.5)


@final
@dataclasses.dataclass(frozen=True)
class RegimeVerdict:
    """The verdict and the sentence that explains it, with every number and threshold."""

    label: str
    sentence: str


_MEANING = {
    "lazy": "Training was lazy: by most measures the network kept its features",
    "rich": "Training was rich: by most measures the network changed its features",
    "in between": "Training was in between: the measures lie between their thresholds or disagree",
}


def verdict_of(kernel_change: float, feature_change: float, linearised_error: float) -> RegimeVerdict:
    """The verdict from the three measures of ``rich_lazy``.

    Example:
        >>> verdict_of(0.02, 0.01, 0.03).label
        'lazy'
    """
    measures = {
        "tangent kernel changed by": (kernel_change, KERNEL_CHANGE),
        "features by (1 - CKA)": (feature_change, FEATURE_CHANGE),
        "error of the linearised network": (linearised_error, LINEARISED_ERROR),
    }
    votes = [threshold.vote(value) for value, threshold in measures.values()]
    label = next((side for side in ("lazy", "rich") if votes.count(side) >= 2), "in between")
    parts = [
        f"{name} {value:.3g} (lazy < {threshold.lazy_below:g}, rich > {threshold.rich_above:g})"
        for name, (value, threshold) in measures.items()
    ]
    return RegimeVerdict(label, f"{_MEANING[label]}; {'; '.join(parts)}.")
