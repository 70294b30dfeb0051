r"""The loops of attentive networks, compiled by numba. Imported when they are first used, never before.

Forwards, a step is one product of the macro-states with :math:`[V^\top | W_a^\top]`, the cell, one product of the new
states with :math:`U_a^\top`, and for each sample the attention over the rows it remembers: the newest ``n_buffer`` and
those in ``kept``. States are read where they stand in the table of all steps; nothing is copied from place to place.
On the way back the tanh of the alignment is computed again; gradients by the weights are products over all steps,
made by the caller. The plain twin is the loop of ``plain.py``; the tests compare them.

Rows are copied number by number: numba compiles an assignment of slices with the words of its error, for seconds. The
products are the register tiles of the Elman scan; the cache on disk watches that file too (``kept``).
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy
from numba.core import types
from numba.extending import overload

from separatrix.core.arithmetic.keeping import has_code, kept

from ...recurrent.steps import elman_loops
from ...recurrent.steps.elman_loops import (
    CODES,
    TANH,
    _add_products as add_products,
    _apply as apply_phi,
    _tanh as tanh_of_doubles,
    _through_slope as through_slope,
    packed,
)

__all__ = ["CODES", "GATED", "NORMALISATIONS", "backward", "forward", "has_code", "packed"]

GATED = -1
"""In place of the number of a nonlinearity: an LSTM cell."""
NONE, SHARE, MEAN = range(3)
NORMALISATIONS = {"none": NONE, "share": SHARE, "mean": MEAN}

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
_loop = kept(elman_loops.__file__, **_OPTIONS)


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
def _gates_forward(pre, gates, before, after, hidden):
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
def _gates_back(by_hidden, by_cell, gates, before, after, by_pre):
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


@_part
@no_type_check
def _screen(leaving, sample, kept, scores):
    """The row that leaves the buffer takes the place of the worst kept one, if it is strictly better.

    Of several with the least score the most recent goes; an empty place is worse than all, and the first is filled.
    """
    worst = 0
    for place in range(len(kept)):
        if kept[place] < 0:
            worst = place
            break
        score, least = scores[kept[place], sample], scores[kept[worst], sample]
        if score < least or (score == least and kept[place] > kept[worst]):
            worst = place
    if kept[worst] < 0 or scores[leaving, sample] > scores[kept[worst], sample]:
        kept[worst] = leaving


@_part
@no_type_check
def _list_rows(t, n_buffer, kept, rows, places):
    """Rows that a step attends to and their places in the table of weights; returns how many."""
    count = 0
    for row in range(max(0, t - n_buffer + 1), t + 1):
        rows[count], places[count] = row, row % n_buffer
        count += 1
    for place in range(len(kept)):
        if kept[place] >= 0:
            rows[count], places[count] = kept[place], n_buffer + place
            count += 1
    return count


@_part
@no_type_check
def _align(query, vector, keys, sample, rows, count, logits):
    """Logits ``v . tanh(q + k)`` of the listed rows become their softmax."""
    zero = query.dtype.type(0)
    for i in range(count):
        key, total = keys[rows[i], sample], zero
        for j in range(len(query)):
            total += vector[j] * tanh(query[j] + key[j])
        logits[i] = total
    largest = logits[0]
    for i in range(count):
        largest = logits[i] if logits[i] > largest else largest
    total = zero
    for i in range(count):
        logits[i] = numpy.exp(logits[i] - largest)
        total += logits[i]
    for i in range(count):
        logits[i] /= total


@_part
@no_type_check
def _score(t, sample, weights, n_ring, first, count, scores, normalise):
    """Add what the rows of the buffer were given; they are the first ``n_ring`` of the listed ones."""
    for i in range(n_ring):
        row = first + i
        if normalise == NONE:
            scores[row, sample] += weights[i]
        elif normalise == SHARE:
            scores[row, sample] += weights[i] * scores.dtype.type(count)
        else:
            scores[row, sample] += (weights[i] - scores[row, sample]) / scores.dtype.type(t - row + 1)


@_loop
@no_type_check
def forward(drives, tables, weights_of, settings, lengths, kept, kept_end, scores, final, logged, gates):
    """All steps; fills everything that is not given.

    ``tables``: hidden, keys, queries (t, batch, n), states and cells (t + 1, batch, n), whose first row is given.
    ``weights_of``: panels of [V' | W'], panels of U', vector, bias. ``settings``: phi, n_buffer, normalise, mix.
    ``kept`` (t, batch, rho): rows kept at each step, all -1 before; ``kept_end`` those after the length of a sample;
    ``final`` (t, batch): scores on leaving, or at the end of the sample; ``logged`` (t or 0, batch, places).
    """
    hidden, keys, queries, states, cells = tables
    panels, key_panels, vector, bias = weights_of
    phi, n_buffer, normalise, a, b = settings
    n_steps, batch, n = hidden.shape
    n_entering, n_kept = drives.shape[2], kept.shape[2]
    sums = numpy.zeros((batch, panels.shape[0] * panels.shape[2]), hidden.dtype)
    key_sums = numpy.zeros((batch, key_panels.shape[0] * key_panels.shape[2]), hidden.dtype)
    size = min(n_buffer, n_steps) + n_kept
    rows, places, weights = (
        numpy.empty(size, numpy.int64),
        numpy.empty(size, numpy.int64),
        numpy.empty(size, hidden.dtype),
    )
    for t in range(n_steps):
        for s in range(batch):
            for j in range(n_entering):
                sums[s, j] = drives[t, s, j]
            sums[s, n_entering:] = 0
        add_products(sums, states, t, panels)
        for s in range(batch):
            for j in range(n):
                queries[t, s, j] = sums[s, n_entering + j]
            if phi == GATED:
                _gates_forward(sums[s], gates[t, s], cells[t, s], cells[t + 1, s], hidden[t, s])
            else:
                if phi == TANH:
                    for j in range(n):
                        sums[s, j] = tanh(sums[s, j])
                else:
                    apply_phi(phi, sums[s : s + 1], bias)
                for j in range(n):
                    hidden[t, s, j] = sums[s, j]
        key_sums[:] = 0
        add_products(key_sums, hidden, t, key_panels)
        for s in range(batch):
            for j in range(n):
                keys[t, s, j] = key_sums[s, j]
            if t > 0:
                for place in range(n_kept):
                    kept[t, s, place] = kept[t - 1, s, place]
            if t >= n_buffer:
                if t < lengths[s]:
                    final[t - n_buffer, s] = scores[t - n_buffer, s]
                if n_kept > 0:
                    _screen(t - n_buffer, s, kept[t, s], scores)
            count = _list_rows(t, n_buffer, kept[t, s], rows, places)
            _align(queries[t, s], vector, keys, s, rows, count, weights)
            state, newest = states[t + 1, s], hidden[t, s]
            for j in range(n):
                state[j] = a * newest[j]
            for i in range(count):
                value, share = hidden[rows[i], s], b * weights[i]
                for j in range(n):
                    state[j] += share * value[j]
            if len(logged) > 0:
                for i in range(count):
                    logged[t, s, places[i]] = weights[i]
            first = max(0, t - n_buffer + 1)
            _score(t, s, weights, t + 1 - first, first, count, scores, normalise)
            if t + 1 == lengths[s]:
                for row in range(first, t + 1):
                    final[row, s] = scores[row, s]
                for place in range(n_kept):
                    kept_end[s, place] = kept[t, s, place]


@_part
@no_type_check
def _attention_back(
    by_state,
    query,
    vector,
    hidden,
    keys,
    sample,
    rows,
    count,
    weights,
    by_values,
    by_keys,
    by_query,
    by_vector,
    slopes,
    b,
):
    """Gradients of one attention; those by keys and query are without the factor ``vector``."""
    n, zero, one = len(query), query.dtype.type(0), query.dtype.type(1)
    mean = zero
    for i in range(count):
        value, total = hidden[rows[i], sample], zero
        for j in range(n):
            total += by_state[j] * value[j]
        slopes[i] = b * total
        mean += weights[i] * slopes[i]
    for j in range(n):
        by_query[j] = zero
        by_vector[j] = zero
    for i in range(count):
        key, by_key, by_value = keys[rows[i], sample], by_keys[rows[i], sample], by_values[rows[i], sample]
        share, by_logit = b * weights[i], weights[i] * (slopes[i] - mean)
        for j in range(n):
            aligned = tanh(query[j] + key[j])
            slope = by_logit * (one - aligned * aligned)
            by_vector[j] += by_logit * aligned
            by_query[j] += slope
            by_key[j] += slope
        for j in range(n):
            by_value[j] += share * by_state[j]


@_loop
@no_type_check
def backward(incoming, tables, weights_of, settings, kept, logged, gates, found, now, by_cell):
    """All steps back.

    ``incoming``: gradients by hidden states, macro-states and cells (t or 0, batch, n). ``weights_of``: panels of
    [V; W], panels of U, vector. ``found``: receives the gradients by what enters cell and query side by side
    (t, batch, parts n + n); by keys (t, batch, n); by values (t, batch, n), both zero before; by the vector and by the
    bias of the nonlinearity (n,), in double precision. ``now`` (batch, n) and ``by_cell`` become those by the initial
    state.
    """
    from_hidden, from_states, from_cells = incoming
    hidden, keys, queries, cells = tables
    panels, key_panels, vector = weights_of
    phi, n_buffer, _, a, b = settings
    product, by_keys, by_values, vector_sum, bias_sum = found
    n_steps, batch, n = hidden.shape
    n_entering, n_kept = product.shape[2] - n, kept.shape[2]
    sums = numpy.zeros((batch, panels.shape[0] * panels.shape[2]), hidden.dtype)
    key_sums = numpy.zeros((batch, key_panels.shape[0] * key_panels.shape[2]), hidden.dtype)
    size = min(n_buffer, n_steps) + n_kept
    rows, places = numpy.empty(size, numpy.int64), numpy.empty(size, numpy.int64)
    weights, slopes = numpy.empty(size, hidden.dtype), numpy.empty(size, hidden.dtype)
    by_vector, by_bias = numpy.zeros(n, hidden.dtype), numpy.zeros((1, n), hidden.dtype)
    for t in range(n_steps - 1, -1, -1):
        for s in range(batch):
            if len(from_states) > 0:
                for j in range(n):
                    now[s, j] += from_states[t, s, j]
            count = _list_rows(t, n_buffer, kept[t, s], rows, places)
            if len(logged) > 0:
                for i in range(count):
                    weights[i] = logged[t, s, places[i]]
            else:
                _align(queries[t, s], vector, keys, s, rows, count, weights)
            by_query = product[t, s, n_entering:]
            _attention_back(
                now[s],
                queries[t, s],
                vector,
                hidden,
                keys,
                s,
                rows,
                count,
                weights,
                by_values,
                by_keys,
                by_query,
                by_vector,
                slopes,
                b,
            )
            by_key = by_keys[t, s]  # of this step's state: complete by now
            for j in range(n):
                vector_sum[j] += by_vector[j]
                by_query[j] *= vector[j]
                by_key[j] *= vector[j]
                key_sums[s, j] = by_values[t, s, j] + a * now[s, j]
            if len(from_hidden) > 0:
                for j in range(n):
                    key_sums[s, j] += from_hidden[t, s, j]
        add_products(key_sums, by_keys, t, key_panels)
        for s in range(batch):
            if phi == GATED:
                if len(from_cells) > 0:
                    for j in range(n):
                        by_cell[s, j] += from_cells[t, s, j]
                by_pre = product[t, s, :n_entering]
                _gates_back(key_sums[s, :n], by_cell[s], gates[t, s], cells[t, s], cells[t + 1, s], by_pre)
            else:
                through_slope(phi, hidden, key_sums, product, by_bias, t, s, 0, hidden.dtype.type(1))
        for j in range(n):
            bias_sum[j] += by_bias[0, j]
            by_bias[0, j] = 0
        sums[:] = 0
        add_products(sums, product, t, panels)
        for s in range(batch):
            for j in range(n):
                now[s, j] = sums[s, j]
