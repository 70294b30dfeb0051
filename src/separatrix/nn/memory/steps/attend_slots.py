"""What a sample remembers as a row of slots: a ring of the newest states, and behind it those that are kept.

Compiled by numba. A state stands in slot ``t % n_buffer``; before it is overwritten it may be copied to one of the
slots behind. Filled slots have no gaps, because places of kept rows are filled in order and only once the ring is full.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba

NONE, SHARE, MEAN = range(3)
NORMALISATIONS = {"none": NONE, "share": SHARE, "mean": MEAN}

_INSIDE: Any = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "forceinline": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
_part = numba.njit(**_INSIDE)


@_part
@no_type_check
def screen(t, sample, n_buffer, kept, scores):
    """The row that leaves the buffer takes the place of the worst kept one, if it is strictly better: which, or -1.

    Of several with the least score the most recent goes; an empty place is worse than all, and the first is filled.
    """
    leaving, worst = t - n_buffer, 0
    for place in range(kept.shape[2]):
        if kept[t, sample, place] < 0:
            kept[t, sample, place] = leaving
            return place
        score, least = scores[kept[t, sample, place], sample], scores[kept[t, sample, worst], sample]
        if score < least or (score == least and kept[t, sample, place] > kept[t, sample, worst]):
            worst = place
    if scores[leaving, sample] > scores[kept[t, sample, worst], sample]:
        kept[t, sample, worst] = leaving
        return worst
    return -1


@_part
@no_type_check
def count_filled(t, sample, n_buffer, kept):
    """Slots that the attention of a step sees."""
    count = min(t + 1, n_buffer)
    for place in range(kept.shape[2]):
        count += 1 if kept[t, sample, place] >= 0 else 0
    return count


@_part
@no_type_check
def row_of(slot, t, sample, n_buffer, kept):
    """The step of the state in a slot."""
    if slot >= n_buffer:
        return kept[t, sample, slot - n_buffer]
    newest = t % n_buffer
    return t - newest + slot - (n_buffer if slot > newest else 0)


@_part
@no_type_check
def score(t, sample, weights, n_buffer, count, kept, scores, normalise):
    """Add what the rows of the ring were given."""
    for slot in range(min(t + 1, n_buffer)):
        row = row_of(slot, t, sample, n_buffer, kept)
        if normalise == NONE:
            scores[row, sample] += weights[slot]
        elif normalise == SHARE:
            scores[row, sample] += weights[slot] * scores.dtype.type(count)
        else:
            scores[row, sample] += (weights[slot] - scores[row, sample]) / scores.dtype.type(t - row + 1)


@_part
@no_type_check
def changed_place(t, sample, kept):
    """Where the row that left the buffer at a step was kept; -1 if nowhere."""
    for place in range(kept.shape[2]):
        if kept[t, sample, place] != kept[t - 1, sample, place]:
            return place
    return -1
