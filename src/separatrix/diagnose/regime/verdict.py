"""Rich, lazy or in between: the thresholds, when a word is given at all, and the sentence that goes with it.

Each of three measures says lazy below its first threshold and rich above its second. The verdict is what at least two
of them say; otherwise it is in between. Below a minimal drop of the loss no word is given: a network that has learned
nothing has not been lazy.
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
MIN_DROP = 0.5
"""Fraction of the loss that training must have removed before a word is given."""
NO_WORD = "no word"


@final
@dataclasses.dataclass(frozen=True)
class RegimeVerdict:
    """The verdict (``rich``, ``lazy``, ``in between`` or ``no word``) and the sentence that explains it."""

    label: str
    sentence: str


_MEANING = {
    "lazy": "Training was lazy: by most measures the network kept its features",
    "rich": "Training was rich: by most measures the network changed its features",
    "in between": "Training was in between: the measures lie between their thresholds or disagree",
}


def relative_drop(loss_before: float, loss_after: float) -> float:
    """The fraction of the loss that was removed; NaN for a loss that is not positive at the start."""
    return 1 - loss_after / loss_before if loss_before > 0 else math.nan


def verdict_of(
    kernel_change: float, feature_change: float, linearised_error: float, drop: float = 1.0
) -> RegimeVerdict:
    """The verdict from the three measures of ``rich_lazy`` and the fraction of the loss that training removed.

    Example:
        >>> verdict_of(0.02, 0.01, 0.03, drop=0.9).label
        'lazy'
        >>> verdict_of(0.02, 0.01, 0.03, drop=0.03).label
        'no word'
    """
    measures = {
        "tangent kernel changed by": (kernel_change, KERNEL_CHANGE),
        "features by (1 - CKA)": (feature_change, FEATURE_CHANGE),
        "error of the linearised network": (linearised_error, LINEARISED_ERROR),
    }
    parts = [
        f"{name} {value:.3g} (lazy < {threshold.lazy_below:g}, rich > {threshold.rich_above:g})"
        for name, (value, threshold) in measures.items()
    ]
    if not drop >= MIN_DROP:
        removed = "the loss is not positive" if math.isnan(drop) else f"training removed {drop:.2g} of the loss"
        return RegimeVerdict(
            NO_WORD, f"No word: {removed}, and below {MIN_DROP:g} there is too little to judge; {'; '.join(parts)}."
        )
    votes = [threshold.vote(value) for value, threshold in measures.values()]
    label = next((side for side in ("lazy", "rich") if votes.count(side) >= 2), "in between")
    return RegimeVerdict(label, f"{_MEANING[label]}; {'; '.join(parts)}.")
