"""Rich, lazy or in between: the thresholds, when a word is given at all, and the sentence that goes with it.

The word is decided by the error of the network linearised at the start: lazy training is what the linearised network
would have done. On 54 trainings other than those reported (``benchmarks/rich_lazy.py``, set ``calibration``) it was the
measure that agreed best with linearised training by the same optimiser (0.88 of 153 points, never lazy for rich or rich
for lazy); a vote with the changes of kernel and features agreed less (0.74), since a linear network turns its features
without leaving its linearisation far behind. Those two are given beside it, without a threshold.

Below a minimal drop of the loss no word is given: a network that has learned nothing has not been lazy, and early in
training nearly all are (in the calibration 0.72 of the points before half of the loss was gone, 0.43 at the end).
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


LINEARISED_ERROR = Threshold(0.18, 0.55)
"""Chosen on the calibration cases."""
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
    "lazy": "Training was lazy: the network did what its linearisation would have done",
    "rich": "Training was rich: the network left its linearisation",
    "in between": "Training was in between",
}


def relative_drop(loss_before: float, loss_after: float) -> float:
    """The fraction of the loss that was removed; NaN for a loss that is not positive at the start."""
    return 1 - loss_after / loss_before if loss_before > 0 else math.nan


def verdict_of(
    kernel_change: float, feature_change: float, linearised_error: float, drop: float = 1.0
) -> RegimeVerdict:
    """The verdict from the error of the linearised network and the fraction of the loss that training removed.

    The changes of kernel and features stand in the sentence as evidence.

    Example:
        >>> verdict_of(0.02, 0.01, 0.03, drop=0.9).label
        'lazy'
        >>> verdict_of(0.02, 0.01, 0.03, drop=0.03).label
        'no word'
    """
    evidence = (
        f"error of the linearised network {linearised_error:.3g} (lazy < {LINEARISED_ERROR.lazy_below:g}, rich > "
        f"{LINEARISED_ERROR.rich_above:g}); tangent kernel changed by {kernel_change:.3g}, features by "
        f"{feature_change:.3g} (1 - CKA)"
    )
    label = LINEARISED_ERROR.vote(linearised_error)
    if not drop >= MIN_DROP or label not in _MEANING:
        removed = "the loss is not positive" if math.isnan(drop) else f"training removed {drop:.2g} of the loss"
        return RegimeVerdict(
            NO_WORD, f"No word: {removed}, and below {MIN_DROP:g} there is too little to judge; {evidence}."
        )
    return RegimeVerdict(label, f"{_MEANING[label]}; {evidence}.")
