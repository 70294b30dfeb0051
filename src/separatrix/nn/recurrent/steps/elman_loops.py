r"""The loops of the Elman scan, compiled by numba. Imported when they are first used, never before.

Forward, :math:`h_{t+1} = k h_t + r\,\phi(V h_t + x_t; b)`; back, :math:`d_t = \phi'_t g_t` and
:math:`g_{t-1} = e_{t-1} + k g_t + V^\top d_t`. Their plain twin is the loop of ``elman.py``; the tests compare them.

The product of a few rows with a matrix is all the work. A library call for so small a product costs as much as the
product; here a tile of at most five rows and two vectors of columns stays in registers while the sum runs
(``_tile_of``, written as LLVM vectors, because a compiler does not find this by itself). The matrix is packed once a
sequence into panels as wide as a tile, so that a panel stays in the innermost cache while the rows go by. The same
tiles add up the gradient of the matrix over all steps. Loops index whole arrays: a row cut out of an array
(``a[t, b]``) is an object with a counter, which costs as much as the work on the row.

Everything that is compiled stands in this file: the cache on disk watches the file of the compiled function only.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from separatrix.core.arithmetic.keeping import kept

MODRELU, TANH, RELU, LINEAR = range(4)
CODES = {"modrelu": MODRELU, "tanh": TANH, "relu": RELU, "linear": LINEAR}
TILE_ROWS, TILE_VECTORS = 5, 2
"""Ten sums, two vectors of the matrix and one number of the state: thirteen of sixteen registers."""
OUTER_TERMS = 128
"""Terms of a sum over all steps that a tile adds at a time: a panel of so many rows fits into the innermost cache."""
TANH_LIMIT = 20.0
"""tanh is one in float64 from here on."""

_features = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _features.get("avx512f") else 32 if _features.get("avx") else 16

# Fused multiply-add and free order of sums; NaN and infinity keep their meaning.
_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "fastmath": {"contract", "reassoc", "nsz"},
}
_INSIDE: Any = {**_OPTIONS, "no_cpython_wrapper": True}  # called by compiled code alone
_part = numba.njit(**_INSIDE)
_loop = kept(**_OPTIONS)


@no_type_check
def _uncounted(context, builder, kind, value):
    if isinstance(kind, types.BaseTuple):
        pairs = enumerate(kind)
        parts = [_uncounted(context, builder, part, builder.extract_value(value, i)) for i, part in pairs]
        return context.make_tuple(builder, kind, parts)
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    return value


@intrinsic
@no_type_check
def borrowed(_, arrays):
    """Arrays, or tuples of them, without their counters: whoever called keeps them alive.

    Every function that is given an array counts it, there and back, by two operations that no other core may disturb;
    in loops over samples these cost a sixth of all time.
    """

    def code(context, builder, sig, args):
        return _uncounted(context, builder, sig.args[0], args[0])

    return arrays(arrays), code


@no_type_check
def _tile_of(n_rows):
    """An intrinsic: ``sums[row + r, column + j] += sum_k L[r, k] R[k, j]`` for so many rows r, and a panel's columns j.

    L lies in ``left`` at ``left_place``: where it starts, and how far apart its rows and its terms k are. R is a panel
    of ``depth`` rows that starts at ``panel_start`` of ``panels``.
    """

    @intrinsic
    def add_tile(_, sums, row, column, left, left_place, panels, panel_start, depth):
        lanes = VECTOR_BYTES // (sums.dtype.bitwidth // 8)

        def code(context, builder, signature, arguments):
            sums_, row_, column_, left_, left_place_, panels_, panel_start, depth_ = arguments
            scalar = context.get_value_type(sums.dtype)
            vector, whole = ir.VectorType(scalar, lanes), ir.IntType(64)
            array = {
                "sums": cgutils.create_struct_proxy(signature.args[0])(context, builder, sums_),
                "left": cgutils.create_struct_proxy(signature.args[3])(context, builder, left_),
                "panels": cgutils.create_struct_proxy(signature.args[5])(context, builder, panels_),
            }
            width = cgutils.unpack_tuple(builder, array["sums"].shape)[1]
            left_start, by_row, by_term = cgutils.unpack_tuple(builder, left_place_)

            def place(name, offset):
                pointer = builder.gep(array[name].data, [offset])
                return builder.bitcast(pointer, vector.as_pointer())

            def load(name, offset):
                value = builder.load(place(name, offset))
                value.align = sums.dtype.bitwidth // 8
                return value

            def spread(number):
                lone = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
                everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
                return builder.shuffle_vector(lone, ir.Constant(vector, ir.Undefined), everywhere)

            cells = [(r, v) for r in range(n_rows) for v in range(TILE_VECTORS)]
            ends = [
                builder.add(builder.mul(builder.add(row_, whole(r)), width), builder.add(column_, whole(v * lanes)))
                for r, v in cells
            ]
            starts = [builder.add(left_start, builder.mul(whole(r), by_row)) for r in range(n_rows)]
            before = [load("sums", end) for end in ends]

            entry, loop, after = builder.block, builder.append_basic_block("sum"), builder.append_basic_block("store")
            builder.branch(loop)
            builder.position_at_end(loop)
            k = builder.phi(whole)
            running = [builder.phi(vector) for _ in cells]
            here = builder.add(panel_start, builder.mul(k, whole(TILE_VECTORS * lanes)))
            columns = [load("panels", builder.add(here, whole(v * lanes))) for v in range(TILE_VECTORS)]
            along = builder.mul(k, by_term)
            factors = [
                spread(builder.load(builder.gep(array["left"].data, [builder.add(start, along)]))) for start in starts
            ]
            total = [
                builder.fadd(builder.fmul(factors[r], columns[v], flags=["contract"]), so_far, flags=["contract"])
                for (r, v), so_far in zip(cells, running, strict=True)
            ]
            following = builder.add(k, whole(1))
            for phi, first, again in zip([k, *running], [whole(0), *before], [following, *total], strict=True):
                phi.add_incoming(first, entry)
                phi.add_incoming(again, loop)
            builder.cbranch(builder.icmp_signed("<", following, depth_), loop, after)

            builder.position_at_end(after)
            for end, value in zip(ends, total, strict=True):
                builder.store(value, place("sums", end)).align = sums.dtype.bitwidth // 8
            return context.get_dummy_value()

        index = types.intp
        place = types.UniTuple(index, 3)
        return types.void(sums, index, index, left, place, panels, index, index), code

    return add_tile


_add_1, _add_2, _add_3, _add_4, _add_5 = (_tile_of(n_rows) for n_rows in range(1, TILE_ROWS + 1))


@_part
@no_type_check
def _add_panel(sums, column, left, by_row, by_term, start, panels, panel_start, depth):
    """Tiles of a panel for all rows of ``sums``."""
    n_rows = sums.shape[0]
    row = 0
    while row + 5 <= n_rows:
        _add_5(sums, row, column, left, (start + row * by_row, by_row, by_term), panels, panel_start, depth)
        row += 5
    place = (start + row * by_row, by_row, by_term)
    if n_rows - row == 4:
        _add_4(sums, row, column, left, place, panels, panel_start, depth)
    elif n_rows - row == 3:
        _add_3(sums, row, column, left, place, panels, panel_start, depth)
    elif n_rows - row == 2:
        _add_2(sums, row, column, left, place, panels, panel_start, depth)
    elif n_rows - row == 1:
        _add_1(sums, row, column, left, place, panels, panel_start, depth)


@_part
@no_type_check
def _add_products(sums, left, t, panels):
    """``sums[b, j] += sum_k left[t, b, k] matrix[k, j]``; sums is padded to whole panels."""
    n_panels, depth, n_columns = panels.shape
    start = t * left.shape[1] * depth
    for panel in range(n_panels):
        _add_panel(sums, panel * n_columns, left, depth, 1, start, panels, panel * depth * n_columns, depth)


@no_type_check
def packed(matrix):
    """The matrix as panels (panel, row, column within it), its last columns filled up with zeros."""
    n_columns = TILE_VECTORS * VECTOR_BYTES // matrix.itemsize
    n_rows, n = matrix.shape
    n_panels = -(-n // n_columns)
    wide = numpy.zeros((n_rows, n_panels * n_columns), dtype=matrix.dtype)
    wide[:, :n] = matrix
    return numpy.ascontiguousarray(wide.reshape(n_rows, n_panels, n_columns).transpose(1, 0, 2))


@no_type_check
def outer_sums(left, right):
    """``left' right`` of two tall matrices."""
    n_columns = TILE_VECTORS * VECTOR_BYTES // left.itemsize
    width = -(-right.shape[1] // n_columns) * n_columns
    sums = numpy.zeros((left.shape[1], width), left.dtype)
    add_outer(sums, left, right, numpy.zeros((OUTER_TERMS, n_columns), left.dtype))
    return sums[:, : right.shape[1]]


@_part
@no_type_check
def _tanh(x):
    """In float64 and without branches, so that it runs on vectors: a continued fraction at x/16, then
    tanh 2y = 2t/(1 + t^2) four times, which never enlarges a relative error."""
    y = (TANH_LIMIT if x > TANH_LIMIT else -TANH_LIMIT if x < -TANH_LIMIT else x) / 16.0  # NaN passes
    z = y * y
    top = 34459425.0 + z * (4729725.0 + z * (135135.0 + z * (990.0 + z)))
    t = y * top / (34459425.0 + z * (16216200.0 + z * (945945.0 + z * (13860.0 + z * 45.0))))
    for _ in range(4):
        t = 2.0 * t / (1.0 + t * t)
    return t


@_part
@no_type_check
def _apply(phi, a, bias):
    """phi of rows in place; the same comparisons as torch's, so that NaN stays NaN and zero stays zero."""
    zero = a.dtype.type(0)
    for b in range(a.shape[0]):
        if phi == MODRELU:
            for j in range(len(bias)):
                size = abs(a[b, j]) + bias[j]
                size = zero if size <= zero else size
                a[b, j] = size if a[b, j] > zero else -size if a[b, j] < zero else zero * a[b, j]
        elif phi == TANH:
            for j in range(len(bias)):
                a[b, j] = _tanh(a[b, j])
        elif phi == RELU:
            for j in range(len(bias)):
                a[b, j] = zero if a[b, j] <= zero else a[b, j]


@_loop
@no_type_check
def forward(drives, states, panels, bias, phi, keep, rate, lengths):
    """Fill ``states[1:]`` from ``states[0]``, with ``panels`` of V'; a state stays as it is after its length."""
    drives, states, panels, bias = borrowed(drives), borrowed(states), borrowed(panels), borrowed(bias)
    n_steps, batch, n = drives.shape
    sums = numpy.zeros((batch, panels.shape[0] * panels.shape[2]), drives.dtype)
    for t in range(n_steps):
        for b in range(batch):
            for j in range(n):
                sums[b, j] = drives[t, b, j]
        _add_products(sums, states, t, panels)
        _apply(phi, sums, bias)
        for b in range(batch):
            if t >= lengths[b]:
                for j in range(n):
                    states[t + 1, b, j] = states[t, b, j]
            elif keep == 0 and rate == 1:  # zero times infinity must not come up
                for j in range(n):
                    states[t + 1, b, j] = sums[b, j]
            else:
                for j in range(n):
                    states[t + 1, b, j] = keep * states[t, b, j] + rate * sums[b, j]


@_part
@no_type_check
def _through_slope(phi, values, now, by_drives, by_bias, t, b, bias_row, factor):
    """A row of gradients by phi's value becomes one by its argument; what a bias receives goes to ``by_bias``."""
    zero, one = now.dtype.type(0), now.dtype.type(1)
    n = values.shape[2]
    if phi == MODRELU:
        for j in range(n):
            value = values[t, b, j]
            through = zero if value == zero else factor * now[b, j]
            by_drives[t, b, j] = through
            by_bias[bias_row, j] += through if value > zero else -through
    elif phi == TANH:
        for j in range(n):
            by_drives[t, b, j] = now[b, j] * (factor * (one - values[t, b, j] * values[t, b, j]))
    elif phi == RELU:
        for j in range(n):
            by_drives[t, b, j] = factor * now[b, j] if values[t, b, j] > zero else zero
    else:
        for j in range(n):
            by_drives[t, b, j] = factor * now[b, j]


@_loop
@no_type_check
def backward(values, by_drives, by_bias, rows, row_strides, by_initial, panels, phi, keep, rate, lengths, space):
    """Fill ``by_drives``, ``by_initial``, and ``by_bias`` for each sample, from the gradients that came to the states
    from outside.

    Those lie in ``rows``, whose strides along time and batch are given, so that nobody has to put them in order first.
    ``values`` are phi's, ``panels`` of V; ``space``: zeros, two rows of the panels' columns for each sample.
    """
    values, by_drives, by_bias = borrowed(values), borrowed(by_drives), borrowed(by_bias)
    rows, by_initial, panels = borrowed(rows), borrowed(by_initial), borrowed(panels)
    n_steps, batch, n = by_drives.shape
    zero = by_drives.dtype.type(0)
    now, before = borrowed(space[0]), borrowed(space[1])
    for t in range(n_steps, -1, -1):
        for b in range(batch):
            if t > 0:  # without a sign, so that nobody looks whether to count from the end
                start = numpy.uint64((t - 1) * row_strides[0] + b * row_strides[1])
                for j in range(n):
                    before[b, j] = rows[start + numpy.uint64(j)]
            else:
                for j in range(n):
                    before[b, j] = zero
            if t == n_steps:
                continue
            if t >= lengths[b]:  # the state passed through unchanged
                for j in range(n):
                    by_drives[t, b, j] = zero
                    before[b, j] += now[b, j]
                continue
            _through_slope(phi, values, now, by_drives, by_bias, t, b, b, rate)
            if keep != 0:
                for j in range(n):
                    before[b, j] += keep * now[b, j]
        if t < n_steps:
            _add_products(before, by_drives, t, panels)
        now, before = before, now
    for b in range(batch):
        for j in range(n):
            by_initial[b, j] = now[b, j]


@_loop
@no_type_check
def add_outer(sums, left, right, panel):
    """``sums[i, j] += sum_k left[k, i] right[k, j]``; sums is padded to whole panels. As many terms at a time as
    ``panel`` has rows (zeros at first), so that what the tiles read again and again stays near."""
    n_terms, n_rows = left.shape
    n_columns = right.shape[1]
    for first in range(0, n_terms, panel.shape[0]):
        depth = min(panel.shape[0], n_terms - first)
        for column in range(0, sums.shape[1], panel.shape[1]):
            for k in range(depth):
                for j in range(numpy.uint64(min(panel.shape[1], n_columns - column))):
                    panel[k, j] = right[first + k, numpy.uint64(column) + j]
            _add_panel(sums, column, left, 1, n_rows, first * n_rows, panel, 0, depth)
