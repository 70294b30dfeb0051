r"""The velocity of plain self-attention; its plain twin is ``AttentionFlow.velocity``.

Tokens are stored as columns, (d, tokens), filled up to whole vectors. The four products

.. math:: B = \beta \log_2 e\, M X, \quad \ell = B^\top X + \log_2 s, \quad Y = X\,2^{\ell - \max \ell}, \quad V Y

are made of tiles; a block of some vectors of queries runs through logits, softmax in base 2 and both products while it
lies in the innermost cache. Cost: 2 n (n + d) d multiplications and n n powers.
"""

from __future__ import annotations

from typing import no_type_check

from .lanes import filled_lanes, larger, load_lanes, root, store
from .layout import TILE_VECTORS, VECTOR_BYTES
from .making import kept_part, part
from .powers import exp2
from .tiles import product, softmax_powers, vectors_of

MODERATE, MODERATE_DOUBLE = 60.0, 400.0
"""Logits, in base 2, up to which powers need no largest one taken away, in float32 and float64: sums of such powers,
times the largest values and sizes that are followed in that precision, are numbers, and so is the smallest power."""


@part
@no_type_check
def _largest_of(w, first, by, n):
    """Of n vectors, lane by lane; four at a time, because each comparison waits for the one before."""
    a0 = a1 = a2 = a3 = load_lanes(w, first)
    whole = n // 4 * 4
    for place in range(first, first + whole * by, 4 * by):
        a0, a1 = larger(load_lanes(w, place), a0), larger(load_lanes(w, place + by), a1)
        a2, a3 = larger(load_lanes(w, place + 2 * by), a2), larger(load_lanes(w, place + 3 * by), a3)
    for place in range(first + whole * by, first + n * by, by):
        a0 = larger(load_lanes(w, place), a0)
    return larger(larger(a0, a1), larger(a2, a3))


@part
@no_type_check
def _soften(w, at, n_vectors, by, n):
    """Logits of a block to powers of two below their largest, and the sums of these."""
    lanes = VECTOR_BYTES // w.itemsize
    for first in range(at.logits, at.logits + n_vectors * lanes, lanes):
        top = _largest_of(w, first, by, n)
        total = filled_lanes(w.dtype.type(0))
        for j in range(n):
            power = exp2(load_lanes(w, first + j * by) - top)
            store(w, first + j * by, power)
            total = total + power
        store(w, at.scale + first - at.logits, total)


@part
@no_type_check
def _are_moderate(w, at, d, n, ld):
    """Whether no logit can be so large that the powers of two of a row, or their sum, are no numbers."""
    most = load_lanes(w, at.logs)
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = filled_lanes(w.dtype.type(0))
        for k in range(d):
            entry = load_lanes(w, at.keys + k * ld + column)
            square = square + entry * entry
        most = larger(root(square) + larger(load_lanes(w, at.logs + column), filled_lanes(w.dtype.type(0))), most)
    store(w, at.scale, most)
    limit = MODERATE if w.itemsize == 4 else MODERATE_DOUBLE
    for i in range(VECTOR_BYTES // w.itemsize):  # noqa: SIM110 (generators are not compiled)
        if not w[at.scale + i] < limit:
            return False
    return True


@part
@no_type_check
def _tangent(w, at, n_vectors, by, state, slope, ld, column, d):
    """The pull of a block without what points along the tokens."""
    lanes = VECTOR_BYTES // w.itemsize
    for v in range(n_vectors):
        here, pull = column + v * lanes, at.pull + v * lanes
        x, y = state + here, slope + here
        scale = load_lanes(w, at.live + here) / load_lanes(w, at.scale + v * lanes)
        a0 = a1 = a2 = a3 = filled_lanes(w.dtype.type(0))
        whole = d // 4 * 4
        for k in range(0, whole, 4):
            a0 = a0 + load_lanes(w, x + k * ld) * load_lanes(w, pull + k * by)
            a1 = a1 + load_lanes(w, x + (k + 1) * ld) * load_lanes(w, pull + (k + 1) * by)
            a2 = a2 + load_lanes(w, x + (k + 2) * ld) * load_lanes(w, pull + (k + 2) * by)
            a3 = a3 + load_lanes(w, x + (k + 3) * ld) * load_lanes(w, pull + (k + 3) * by)
        for k in range(whole, d):
            a0 = a0 + load_lanes(w, x + k * ld) * load_lanes(w, pull + k * by)
        along = ((a0 + a1) + (a2 + a3)) * scale
        for k in range(d):
            store(w, y + k * ld, load_lanes(w, pull + k * by) * scale - load_lanes(w, x + k * ld) * along)


@kept_part
@no_type_check
def velocity(w, at, d, n, ld, state, slope):
    """Of the n tokens at ``state``, to ``slope``; both have rows of length ``ld``."""
    lanes = VECTOR_BYTES // w.itemsize
    by, column = TILE_VECTORS * lanes, 0
    coupling, value, tokens = (at.coupling, at.depth, 1), (at.value, at.depth, 1), (state, 1, ld)
    while column < n:
        n_vectors = vectors_of(n - column, lanes)
        product(w, n_vectors, d, at.keys + column, ld, at.zeros, 0, coupling, state + column, ld, d)
        column += n_vectors * lanes
    moderate, column = _are_moderate(w, at, d, n, ld), 0
    while column < n:
        n_vectors = vectors_of(n - column, lanes)
        if moderate:
            softmax_powers(w, at, n_vectors, by, n, ld, state + column, d)
        else:
            product(w, n_vectors, n, at.logits, by, at.logs, 1, (at.keys, ld, 1), state + column, ld, d)
            _soften(w, at, n_vectors, by, n)
        product(w, n_vectors, d, at.mean, by, at.zeros, 0, tokens, at.logits, by, n)
        product(w, n_vectors, d, at.pull, by, at.zeros, 0, value, at.mean, by, d)
        _tangent(w, at, n_vectors, by, state, slope, ld, column, d)
        column += n_vectors * lanes
