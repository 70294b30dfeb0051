r"""Additive attention of one sample to the rows it remembers, on vectors of the processor, there and back.

:math:`\tanh(q + k) = 1 - 2\sigma` with :math:`\sigma = 1/(1 + e^{2q} e^{2k})`: with the powers of the query and of
every key at hand, a pair of numbers costs a product, a sum and a quotient. The power of a key is computed once, when
its row is taken in. The one falls out of the softmax and of its gradient, as it does in the torch path. Where a number
is beyond ``WIDE`` its power would be beyond the range of its precision: such rows, and all rows of such a query, are
computed by tanh itself.

Rows of a sample stand one after the other in its ``slots``, each filled up to whole vectors: ``powers`` and ``values``,
and on the way back ``by_keys`` and ``by_values``, flat arrays of one layout. ``line`` is working space, cut into lines
as long as a row (``Lines``).
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from separatrix.dynamics.integration.compiled.loops import lanes as _lanes, layout as _layout, powers as _powers
from separatrix.dynamics.integration.compiled.loops.lanes import filled_lanes, load_lanes, store
from separatrix.dynamics.integration.compiled.loops.layout import VECTOR_BYTES
from separatrix.dynamics.integration.compiled.loops.powers import exp2

from .attend_cells import tanh

FILES = (__file__, _lanes.__file__, _layout.__file__, _powers.__file__)
"""Compiled into whatever calls the functions of this file."""
QUERY, VECTOR, STATE, BY_QUERY, BY_VECTOR, N_LINES = range(6)
"""Lines: powers of the query, the vector of the alignment, the macro-state or the gradient by it, two gradients."""
WIDE_32, WIDE_64 = numpy.float32(42), numpy.float64(340)
"""e^(2x) and its inverse have normal numbers up to here."""
TWICE_LOG2_E, LOG2_E = 2.885390081777927, 1.4426950408889634
ROWS_AT_A_TIME = 64
"""On the way back, so that sums over rows stay in registers and the rows in the cache."""

_INSIDE: Any = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "forceinline": True,
}
_vectors = numba.njit(fastmath={"contract", "nsz", "arcp"}, **_INSIDE)
"""With rounding to whole numbers, which a free order of sums would simplify away."""
_part = numba.njit(fastmath={"contract", "nsz", "arcp", "reassoc"}, **_INSIDE)


def row_length(n: int, itemsize: int) -> int:
    """Numbers filled up to whole vectors; one vector more where rows would collide in a cache."""
    lanes = VECTOR_BYTES // itemsize
    length = -(-n // lanes) * lanes
    return length + lanes if length * itemsize % 1024 == 0 else length


@intrinsic
@no_type_check
def lane_sum(_, a):
    """The sum over a vector."""

    def code(context, builder, sig, args):
        vector = args[0].type
        name = f"llvm.vector.reduce.fadd.v{vector.count}f{a.dtype.bitwidth}"
        kind = ir.FunctionType(vector.element, [vector.element, vector])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [ir.Constant(vector.element, -0.0), args[0]], fastmath=["reassoc"])

    return a.dtype(a), code


@_part
@no_type_check
def lanes_of(w):
    """Numbers in a vector."""
    return VECTOR_BYTES // w.itemsize


@_part
@no_type_check
def _is_wide(numbers, start, n):
    edge = numbers.dtype.type(WIDE_32 if numbers.itemsize == 4 else WIDE_64)
    start, count = numpy.uint64(start), numpy.int32(0)
    for j in range(numpy.uint64(n)):
        count += numpy.int32(abs(numbers[start + j]) > edge)
    return count > 0


@_vectors
@no_type_check
def _raise(w, place, n):
    for j in range(0, n, lanes_of(w)):
        store(w, place + j, exp2(load_lanes(w, place + j)))


@_part
@no_type_check
def copy_row(source, start, n, target, place, factor):
    """A row times a number. Places without a sign: nobody then looks whether one counts from the end, which would
    keep the loop from running on vectors."""
    start, place = numpy.uint64(start), numpy.uint64(place)
    for j in range(numpy.uint64(n)):
        target[place + j] = factor * source[start + j]


@_part
@no_type_check
def times_vector(source, start, n, line, width, target, place):
    """A row times the vector of the alignment."""
    start, place, vector = numpy.uint64(start), numpy.uint64(place), numpy.uint64(VECTOR * width)
    for j in range(numpy.uint64(n)):
        target[place + j] = source[start + j] * line[vector + j]


@_part
@no_type_check
def clear_row(target, place, n):
    """Zeros."""
    place = numpy.uint64(place)
    for j in range(numpy.uint64(n)):
        target[place + j] = 0


@_part
@no_type_check
def fill_powers(numbers, start, n, powers, place):
    """``e^(2x)`` of a row; ones, and True, where one of them is too wide."""
    is_wide, factor = _is_wide(numbers, start, n), numbers.dtype.type(TWICE_LOG2_E)
    for j in range(n, (n + lanes_of(powers) - 1) // lanes_of(powers) * lanes_of(powers)):
        powers[place + j] = 0
    if is_wide:
        clear_row(powers, place, n)
    else:
        copy_row(numbers, start, n, powers, place, factor)
    _raise(powers, place, n)
    return is_wide


@_vectors
@no_type_check
def sigmoid_sums(powers, place, count, width, n, line, sums):
    """``-2 sum_j v_j sigma_j`` of every row."""
    step = lanes_of(powers)
    one, none = filled_lanes(powers.dtype.type(1)), filled_lanes(powers.dtype.type(0))
    for i in range(count):
        row, total = place + i * width, none
        for j in range(0, n, step):
            power = load_lanes(line, QUERY * width + j) * load_lanes(powers, row + j)
            total = total + load_lanes(line, VECTOR * width + j) / (one + power)
        sums[i] = powers.dtype.type(-2) * lane_sum(total)


@_part
@no_type_check
def exact_sum(vector, queries, query, keys, key, n):
    """The same of one row, by tanh."""
    total = vector.dtype.type(0)
    for j in range(n):
        total += vector[j] * (tanh(queries[query + j] + keys[key + j]) - vector.dtype.type(1))
    return total


@_vectors
@no_type_check
def softmax(sums, count):
    """In place; what is behind ``count`` up to a whole vector is overwritten."""
    step = lanes_of(sums)
    largest = sums[0]
    for i in range(count):
        largest = sums[i] if sums[i] > largest else largest
    end = (count + step - 1) // step * step
    for i in range(count):
        sums[i] = (sums[i] - largest) * sums.dtype.type(LOG2_E)
    for i in range(count, end):
        sums[i] = -numpy.inf
    for i in range(0, end, step):
        store(sums, i, exp2(load_lanes(sums, i)))
    total = sums.dtype.type(0)
    for i in range(count):
        total += sums[i]
    for i in range(count):
        sums[i] /= total


@_vectors
@no_type_check
def add_context(values, place, count, width, n, line, shares, a):
    """The state line: ``a newest + sum_i share_i value_i``; it holds the newest before."""
    factor = filled_lanes(a)
    for j in range(0, n, lanes_of(values)):
        total = factor * load_lanes(line, STATE * width + j)
        for i in range(count):
            total = total + filled_lanes(shares[i]) * load_lanes(values, place + i * width + j)
        store(line, STATE * width + j, total)


@_vectors
@no_type_check
def dots(values, place, count, width, n, line, dots):
    """With the state line."""
    step, none = lanes_of(values), filled_lanes(values.dtype.type(0))
    for i in range(count):
        row, total = place + i * width, none
        for j in range(0, n, step):
            total = total + load_lanes(line, STATE * width + j) * load_lanes(values, row + j)
        dots[i] = lane_sum(total)


@_vectors
@no_type_check
def spread_back(powers, by_keys, by_values, place, count, width, n, line, slopes, shares):
    """Gradients of one attention, from those by its logits (``slopes``, times four) and the shares of the context.

    Those by keys and query are without the factor v; that by the vector is -1/2 of what is added to its line.
    """
    step = lanes_of(powers)
    one, none = filled_lanes(powers.dtype.type(1)), filled_lanes(powers.dtype.type(0))
    for j in range(0, n, step):
        store(line, BY_QUERY * width + j, none)
    for first in range(0, count, ROWS_AT_A_TIME):
        last = min(count, first + ROWS_AT_A_TIME)
        for j in range(0, n, step):
            query, state = load_lanes(line, QUERY * width + j), load_lanes(line, STATE * width + j)
            by_query, by_vector = load_lanes(line, BY_QUERY * width + j), load_lanes(line, BY_VECTOR * width + j)
            for i in range(first, last):
                here = place + i * width + j
                sigma = one / (one + query * load_lanes(powers, here))
                part = filled_lanes(slopes[i]) * sigma
                through = part - part * sigma
                by_vector, by_query = by_vector + part, by_query + through
                store(by_keys, here, load_lanes(by_keys, here) + through)
                store(by_values, here, load_lanes(by_values, here) + filled_lanes(shares[i]) * state)
            store(line, BY_QUERY * width + j, by_query)
            store(line, BY_VECTOR * width + j, by_vector)


@_part
@no_type_check
def spread_exactly(queries, query, keys, key, n, by_keys, here, line, width, slope):
    """The same for one row, by tanh, without the gradient by its value."""
    half, one = line.dtype.type(0.5), line.dtype.type(1)
    for j in range(n):
        sigma = half - half * tanh(queries[query + j] + keys[key + j])
        part = slope * sigma
        through = part * (one - sigma)
        line[BY_VECTOR * width + j] += part
        line[BY_QUERY * width + j] += through
        by_keys[here + j] += through
