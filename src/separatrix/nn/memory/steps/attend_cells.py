"""tanh on vectors of single precision, and the LSTM cell of one sample, compiled by numba."""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy
from numba.core import types
from numba.extending import overload

from ...recurrent.steps.elman_loops import _tanh as tanh_of_doubles

TANH_EDGE = numpy.float32(9.02)
"""tanh is one in float32 from here on."""
# x P(x^2) / Q(x^2), fitted to tanh on [0, 9.02] for the least largest relative error: 2.1e-8, of which rounding in
# float32 makes 4e-7 at worst (tests)
P0, P1, P2, P3, P4 = (
    numpy.float32(number)
    for number in (
        0.9999999792409193,
        0.13379678914854357,
        0.0034939867087722207,
        2.0582649053695132e-05,
        1.3317863109187038e-08,
    )
)
Q0, Q1, Q2, Q3, Q4 = (
    numpy.float32(number)
    for number in (1.0, 0.467129942426412, 0.02587089486495072, 0.0003283012454661448, 7.761535035451338e-07)
)

_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
_INSIDE: Any = {**_OPTIONS, "no_cpython_wrapper": True}  # called by compiled code alone
_part = numba.njit(**_INSIDE)


@no_type_check
def tanh(x):
    """Of one number, in its own precision and without branches, so that it runs on vectors; NaN passes."""


@overload(tanh, inline="never", jit_options=_OPTIONS)
@no_type_check
def _overload_tanh(x):
    if x != types.float32:
        return lambda x: tanh_of_doubles(x)

    def rational(x):
        y = TANH_EDGE if x > TANH_EDGE else -TANH_EDGE if x < -TANH_EDGE else x
        z = y * y
        top = y * (P0 + z * (P1 + z * (P2 + z * (P3 + z * P4))))
        return top / (Q0 + z * (Q1 + z * (Q2 + z * (Q3 + z * Q4))))

    return rational


@_part
@no_type_check
def gates_forward(pre, gates, before, after, hidden):
    """An LSTM cell of one sample; ``gates`` receives their values: enter, forget, new, leave."""
    half, n = hidden.dtype.type(0.5), len(hidden)
    for j in range(n):
        gates[j] = half + half * tanh(half * pre[j])
        gates[n + j] = half + half * tanh(half * pre[n + j])
        gates[2 * n + j] = tanh(pre[2 * n + j])
        gates[3 * n + j] = half + half * tanh(half * pre[3 * n + j])
    for j in range(n):
        after[j] = gates[n + j] * before[j] + gates[j] * gates[2 * n + j]
        hidden[j] = gates[3 * n + j] * tanh(after[j])


@_part
@no_type_check
def gates_back(by_hidden, by_cell, gates, before, after, by_pre):
    """Through the cell of one sample; ``by_cell`` becomes the gradient by the earlier one."""
    one, n = by_hidden.dtype.type(1), len(by_hidden)
    for j in range(n):
        enter, forget, new, leave = gates[j], gates[n + j], gates[2 * n + j], gates[3 * n + j]
        end = tanh(after[j])
        through = by_cell[j] + by_hidden[j] * leave * (one - end * end)
        by_pre[j] = through * new * enter * (one - enter)
        by_pre[n + j] = through * before[j] * forget * (one - forget)
        by_pre[2 * n + j] = through * enter * (one - new * new)
        by_pre[3 * n + j] = by_hidden[j] * end * leave * (one - leave)
        by_cell[j] = through * forget
