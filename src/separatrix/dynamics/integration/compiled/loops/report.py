"""What a caller is told of trajectories that only stop."""

from __future__ import annotations

from typing import no_type_check

import numpy

from separatrix.core import Outcome

from .layout import BROKEN, CODE, REJECTED, RESTING, SLOW, SMALL, SPEED, STEPS, TIME
from .making import kept_plain

CONVERGED, OUT_OF_STEPS, NON_FINITE = int(Outcome.CONVERGED), int(Outcome.OUT_OF_STEPS), int(Outcome.NON_FINITE)

OUTCOME, ATTEMPTED, REFUSED, EVALUATIONS, SADDLES, RETURNS, N_WHOLE = range(7)
"""Rows of ``whole``; saddles and returns are found by somebody who looks, and stay what they are here."""
RESIDUAL, ENDED, N_REAL = range(3)
"""Rows of ``real``."""


@kept_plain
@no_type_check
def report(index, tokens, labels, numbers, counts, evaluations, final, whole, real):
    """Write down where trajectories ended and why; returns how many of them have to go on, and to be looked at.

    Args:
        index: which elements of the batch they are.
        tokens, labels, numbers, counts: as the loop left them.
        evaluations: velocities of a step.
        final: the caller's tokens in float64, whatever rows they have become; NaN if the trajectory is lost.
        whole, real: see the names of their rows.
    """
    n_slow, n_small = 0, 0
    for b in range(len(index)):
        place, code = index[b], counts[b, CODE]
        n_slow += code == SLOW
        n_small += code == SMALL
        lost = code == BROKEN
        whole[OUTCOME, place] = NON_FINITE if lost else CONVERGED if code == RESTING else OUT_OF_STEPS
        whole[ATTEMPTED, place] = counts[b, STEPS]
        whole[REFUSED, place] = counts[b, REJECTED]
        whole[EVALUATIONS, place] = evaluations * counts[b, STEPS]
        real[RESIDUAL, place] = numpy.nan if lost else numbers[b, SPEED]
        real[ENDED, place] = numbers[b, TIME]
        for i in range(labels.shape[1]):
            row = labels[b, i]
            for k in range(tokens.shape[2]):
                final[place, i, k] = numpy.nan if lost else tokens[b, row, k]
    return n_slow, n_small
