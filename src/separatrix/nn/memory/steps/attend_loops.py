r"""The loops of attentive networks, compiled by numba. Imported when they are first used, never before.

Forwards, a step is one product of the macro-states with :math:`[V^\top | W_a^\top]`, the cell, one product of the new
states with :math:`U_a^\top`, and for each sample the attention over its slots. On the way back moves between slots are
undone, so that gradients stay where their states stand, and gradients by the weights are added up for some steps at a
time, as soon as their factors are there: tables of them for all steps would cost more than the sums. The plain twin is
the loop of ``plain.py``; the tests compare them.

Rows are copied number by number: numba compiles an assignment of slices with the words of its error, for seconds. The
products are the register tiles of the Elman scan; the cache on disk watches the files of all that is called (``kept``).
"""

from __future__ import annotations

from typing import Any, no_type_check

from separatrix.core.arithmetic.keeping import has_code, kept

from ...recurrent.steps import elman_loops
from ...recurrent.steps.elman_loops import (
    CODES,
    OUTER_TERMS,
    TANH,
    _add_products as add_products,
    _apply as apply_phi,
    _through_slope as through_slope,
    add_outer,
    borrowed,
    packed,
)
from . import attend_cells, attend_lanes, attend_slots
from .attend_cells import gates_back, gates_forward, tanh
from .attend_lanes import (
    BY_QUERY,
    BY_VECTOR,
    N_LINES,
    QUERY,
    STATE,
    VECTOR,
    add_context,
    clear_row,
    copy_row,
    dots,
    exact_sum,
    fill_powers,
    row_length,
    sigmoid_sums,
    softmax,
    spread_back,
    spread_exactly,
    times_vector,
)
from .attend_slots import NORMALISATIONS, changed_place, count_filled, row_of, score, screen

__all__ = [
    "CODES",
    "GATED",
    "NORMALISATIONS",
    "N_LINES",
    "OUTER_TERMS",
    "TERMS",
    "backward",
    "forward",
    "has_code",
    "packed",
    "row_length",
]

GATED = -1
"""In place of the number of a nonlinearity: an LSTM cell."""
TERMS = 512
"""Of the sums that gradients by weights are, between two additions: so many rows stay in the cache."""

_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}
_FILES = (elman_loops.__file__, attend_cells.__file__, attend_slots.__file__, *attend_lanes.FILES)
_part = attend_slots._part
_loop = kept(*_FILES, **_OPTIONS)


@_part
@no_type_check
def _weigh(t, s, count, n_buffer, width, keys, queries, batch, kept, is_wide, wide, powers, line, weights, vector):
    """The weights of the attention of a step. Arrays one by one: in a tuple they would be counted at every call."""
    n, place = len(vector), s * wide.shape[1] * width
    sigmoid_sums(powers, place, count, width, n, line, weights)
    for slot in range(count):
        if is_wide or wide[s, slot]:
            key = (row_of(slot, t, s, n_buffer, kept) * batch + s) * n
            weights[slot] = exact_sum(vector, queries, (t * batch + s) * n, keys, key, n)
    softmax(weights, count)


@_loop
@no_type_check
def forward(drives, tables, weights_of, settings, lengths, kept, kept_end, scores, final, logged, gates, space, wide):
    """All steps; fills everything that is not given.

    ``tables``: hidden, keys, queries (t, batch, n), states and cells (t + 1, batch, n), whose first row is given.
    ``weights_of``: panels of [V' | W'], panels of U', vector, bias. ``settings``: phi, n_buffer, normalise, mix,
    length of a row of the slots. ``kept`` (t, batch, rho): rows kept at each step, all -1 before; ``kept_end`` those
    after the length of a sample; ``final`` (t, batch): scores on leaving, or at the end of the sample; ``logged`` (t or
    0, batch, places). ``space``: powers and values of the slots, lines, sums, weights, shares; all flat and zero.
    ``wide`` (batch, slots): false.
    """
    drives, kept, kept_end, scores = borrowed(drives), borrowed(kept), borrowed(kept_end), borrowed(scores)
    final, logged, gates, wide = borrowed(final), borrowed(logged), borrowed(gates), borrowed(wide)
    hidden, keys, queries, states, cells = borrowed(tables)
    panels, key_panels, vector, bias = borrowed(weights_of)
    phi, n_buffer, normalise, a, b, width = settings
    powers, values, line, sums, key_sums, weights, shares = borrowed(space)
    n_steps, batch, n = hidden.shape
    n_entering, n_kept = drives.shape[2], kept.shape[2]
    flat_sums, sums = sums, sums.reshape(batch, panels.shape[0] * panels.shape[2])
    key_sums = key_sums.reshape(batch, key_panels.shape[0] * key_panels.shape[2])
    n_slots = wide.shape[1]
    flat_keys, flat_queries, one = keys.reshape(-1), queries.reshape(-1), hidden.dtype.type(1)
    flat_hidden, flat_states = hidden.reshape(-1), states.reshape(-1)
    copy_row(vector, 0, n, line, VECTOR * width, one)
    for t in range(n_steps):
        for s in range(batch):
            for j in range(n_entering):
                sums[s, j] = drives[t, s, j]
            for j in range(n_entering, sums.shape[1]):
                sums[s, j] = 0
        add_products(sums, states, t, panels)
        for s in range(batch):
            copy_row(flat_sums, s * sums.shape[1] + n_entering, n, flat_queries, (t * batch + s) * n, one)
            if phi == GATED:
                gates_forward(sums[s], gates[t, s], cells[t, s], cells[t + 1, s], hidden[t, s])
            else:
                if phi == TANH:
                    for j in range(n):
                        sums[s, j] = tanh(sums[s, j])
                else:
                    apply_phi(phi, sums[s : s + 1], bias)
                for j in range(n):
                    hidden[t, s, j] = sums[s, j]
        add_products(key_sums, hidden, t, key_panels)
        newest = t % n_buffer
        for s in range(batch):
            for j in range(n):
                keys[t, s, j] = key_sums[s, j]
                key_sums[s, j] = 0
            first, row = s * n_slots * width, (t * batch + s) * n
            here = first + newest * width
            if t > 0:
                for place in range(n_kept):
                    kept[t, s, place] = kept[t - 1, s, place]
            if t >= n_buffer:
                if t < lengths[s]:
                    final[t - n_buffer, s] = scores[t - n_buffer, s]
                place = screen(t, s, n_buffer, kept, scores) if n_kept > 0 else -1
                if place >= 0:
                    there = first + (n_buffer + place) * width
                    copy_row(powers, here, width, powers, there, one)
                    copy_row(values, here, width, values, there, one)
                    wide[s, n_buffer + place] = wide[s, newest]
            wide[s, newest] = fill_powers(flat_keys, row, n, powers, here)
            copy_row(flat_hidden, row, n, values, here, one)
            is_wide = fill_powers(flat_queries, row, n, line, QUERY * width)
            count = count_filled(t, s, n_buffer, kept)
            _weigh(
                t,
                s,
                count,
                n_buffer,
                width,
                flat_keys,
                flat_queries,
                batch,
                kept,
                is_wide,
                wide,
                powers,
                line,
                weights,
                vector,
            )
            for slot in range(count):
                shares[slot] = b * weights[slot]
            copy_row(values, here, width, line, STATE * width, one)
            add_context(values, first, count, width, n, line, shares, a)
            copy_row(line, STATE * width, n, flat_states, row + batch * n, one)
            if len(logged) > 0:
                for slot in range(count):
                    logged[t, s, slot] = weights[slot]
            score(t, s, weights, n_buffer, count, kept, scores, normalise)
            if t + 1 == lengths[s]:
                for at in range(max(0, t - n_buffer + 1), t + 1):
                    final[at, s] = scores[at, s]
                for place in range(n_kept):
                    kept_end[s, place] = kept[t, s, place]


@_part
@no_type_check
def _refill(start, n, place, keys, hidden, powers, values):
    """Put the state of a row of the tables into a slot; True if its key is too wide."""
    copy_row(hidden, start, n, values, place, hidden.dtype.type(1))
    return fill_powers(keys, start, n, powers, place)


@_loop
@no_type_check
def backward(incoming, tables, weights_of, settings, kept, logged, gates, found, space, wide, portion):
    """All steps back.

    ``incoming``: gradients by hidden states, macro-states and cells (t or 0, batch, n). ``tables``: also the
    macro-states. ``weights_of``: panels of V, of W and of U, vector. ``found``: receives the gradients by the drives
    (t, batch, parts n); by V, W, and U, zero before, their columns filled up to whole panels; by the vector and by the
    bias of the nonlinearity (n,), in double precision; by the initial state and cell (batch, n). ``space``: powers,
    values and gradients of the slots, lines, sums, weights, slopes, shares; all flat and zero. ``wide`` (batch, slots):
    false. ``portion``: gradients by queries and by keys of some steps (steps, batch, n), ``OUTER_TERMS`` rows of a
    panel, and one row (1, n), zero.
    """
    kept, logged, gates, wide = borrowed(kept), borrowed(logged), borrowed(gates), borrowed(wide)
    from_hidden, from_states, from_cells = borrowed(incoming)
    hidden, keys, queries, states, cells = borrowed(tables)
    panels, query_panels, key_panels, vector = borrowed(weights_of)
    phi, n_buffer, _, a, b, width = settings
    by_drives, by_matrix, by_query_weight, by_key_weight, vector_sum, bias_sum, by_initial, by_cell = borrowed(found)
    powers, values, by_keys, by_values, line, sums, key_sums, weights, slopes, shares = borrowed(space)
    query_rows, key_rows, panel, by_bias = borrowed(portion)
    n_steps, batch, n = hidden.shape
    n_entering = by_drives.shape[2]
    flat_sums, kind, one = sums, hidden.dtype.type, hidden.dtype.type(1)
    stride, flat_key_sums = panels.shape[0] * panels.shape[2], key_sums
    sums, key_sums = sums.reshape(batch, stride), key_sums.reshape(batch, stride)
    n_slots, n_portion = wide.shape[1], query_rows.shape[0]
    flat_hidden, flat_keys, flat_queries = hidden.reshape(-1), keys.reshape(-1), queries.reshape(-1)
    flat_query_rows, flat_key_rows = query_rows.reshape(-1), key_rows.reshape(-1)
    copy_row(vector, 0, n, line, VECTOR * width, one)
    for s in range(batch):
        for slot in range(count_filled(n_steps - 1, s, n_buffer, kept)):
            row, place = row_of(slot, n_steps - 1, s, n_buffer, kept), (s * n_slots + slot) * width
            wide[s, slot] = _refill((row * batch + s) * n, n, place, flat_keys, flat_hidden, powers, values)
    end = n_steps
    for t in range(n_steps - 1, -1, -1):
        begin, newest = max(0, end - n_portion), t % n_buffer
        at = t - begin
        for j in range(n):
            line[BY_VECTOR * width + j] = 0
        for s in range(batch):
            if len(from_states) > 0:
                for j in range(n):
                    sums[s, j] += from_states[t, s, j]
            first, row = s * n_slots * width, (t * batch + s) * n
            here = first + newest * width
            is_wide = fill_powers(flat_queries, row, n, line, QUERY * width)
            count = count_filled(t, s, n_buffer, kept)
            if len(logged) > 0:
                for slot in range(count):
                    weights[slot] = logged[t, s, slot]
            else:
                _weigh(
                    t,
                    s,
                    count,
                    n_buffer,
                    width,
                    flat_keys,
                    flat_queries,
                    batch,
                    kept,
                    is_wide,
                    wide,
                    powers,
                    line,
                    weights,
                    vector,
                )
            copy_row(flat_sums, s * stride, n, line, STATE * width, one)
            dots(values, first, count, width, n, line, slopes)
            mean, far = kind(0), is_wide
            for slot in range(count):
                mean += weights[slot] * slopes[slot]
                far |= wide[s, slot]
            for slot in range(count):
                slopes[slot] = kind(4) * b * weights[slot] * (slopes[slot] - mean)
                shares[slot] = b * weights[slot]
            if far:
                for slot in range(count):
                    weights[slot] = slopes[slot]
                    slopes[slot] = kind(0) if is_wide or wide[s, slot] else slopes[slot]
            spread_back(powers, by_keys, by_values, first, count, width, n, line, slopes, shares)
            if far:
                for slot in range(count):
                    if is_wide or wide[s, slot]:
                        key, place = (row_of(slot, t, s, n_buffer, kept) * batch + s) * n, first + slot * width
                        spread_exactly(flat_queries, row, flat_keys, key, n, by_keys, place, line, width, weights[slot])
            times_vector(line, BY_QUERY * width, n, line, width, flat_query_rows, (at * batch + s) * n)
            times_vector(by_keys, here, n, line, width, flat_key_rows, (at * batch + s) * n)
            copy_row(by_values, here, n, flat_key_sums, s * stride, one)
            for j in range(n):
                key_sums[s, j] += a * sums[s, j]
                sums[s, j] = 0
            if len(from_hidden) > 0:
                for j in range(n):
                    key_sums[s, j] += from_hidden[t, s, j]
            if t < n_buffer:
                continue
            # who stood there before comes back, with the gradient it got where it was kept
            place = changed_place(t, s, kept)
            there = first + (n_buffer + place) * width
            if place >= 0:
                copy_row(by_keys, there, n, by_keys, here, one)
                copy_row(by_values, there, n, by_values, here, one)
                clear_row(by_keys, there, n)
                clear_row(by_values, there, n)
            else:
                clear_row(by_keys, here, n)
                clear_row(by_values, here, n)
            row = ((t - n_buffer) * batch + s) * n
            wide[s, newest] = _refill(row, n, here, flat_keys, flat_hidden, powers, values)
            if place >= 0 and kept[t - 1, s, place] >= 0:
                row = (kept[t - 1, s, place] * batch + s) * n
                wide[s, n_buffer + place] = _refill(row, n, there, flat_keys, flat_hidden, powers, values)
        add_products(key_sums, key_rows, at, key_panels)
        for s in range(batch):
            if phi == GATED:
                if len(from_cells) > 0:
                    for j in range(n):
                        by_cell[s, j] += from_cells[t, s, j]
                gates_back(key_sums[s, :n], by_cell[s], gates[t, s], cells[t, s], cells[t + 1, s], by_drives[t, s])
            else:
                through_slope(phi, hidden, key_sums, by_drives, by_bias, t, s, 0, kind(1))
        for j in range(n):
            vector_sum[j] -= 0.5 * line[BY_VECTOR * width + j]
            bias_sum[j] += by_bias[0, j]
            by_bias[0, j] = 0
        add_products(sums, by_drives, t, panels)
        add_products(sums, query_rows, at, query_panels)
        if t == begin:
            seen = states[begin:end].reshape(-1, n)
            left = by_drives[begin:end].reshape(-1, n_entering)
            add_outer(by_matrix, left, seen, panel)
            n_rows = (end - begin) * batch
            add_outer(by_query_weight, query_rows.reshape(-1, n)[:n_rows], seen, panel)
            add_outer(by_key_weight, key_rows.reshape(-1, n)[:n_rows], hidden[begin:end].reshape(-1, n), panel)
            end = begin
    for s in range(batch):
        for j in range(n):
            by_initial[s, j] = sums[s, j]
