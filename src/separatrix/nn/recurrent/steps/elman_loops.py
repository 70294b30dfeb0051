r"""The loops of the Elman scan, compiled by numba. Imported when they are first used, never before.

Forward, :math:`h_{t+1} = k h_t + r\,\phi(V h_t + x_t; b)`; back, :math:`d_t = \phi'_t g_t` and
:math:`g_{t-1} = e_{t-1} + k g_t + V^\top d_t`. Their plain twin is the loop of ``elman.py``; the tests compare them.

The product of a few rows with a matrix is all the work. A library call for so small a product costs as much as the
product; here a tile of at most five rows and two vectors of columns stays in registers while the sum runs
(``_add_tile``, written as LLVM vectors, because a compiler does not find this by itself). The matrix is packed once a
sequence into panels as wide as a tile, so that a panel stays in the innermost cache while the rows go by.

Everything that is compiled stands in this file: the cache on disk watches the file of the compiled function only.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

MODRELU, TANH, RELU, LINEAR = range(4)
CODES = {"modrelu": MODRELU, "tanh": TANH, "relu": RELU, "linear": LINEAR}
TILE_ROWS, TILE_VECTORS = 5, 2
"""Ten sums, two vectors of the matrix and one number of the state: thirteen of sixteen registers."""
TANH_LIMIT = 20.0
"""tanh is one in float64 from here on."""

_features = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _features.get("avx512f") else 32 if _features.get("avx") else 16

# Fused multiply-add and free order of sums; NaN and infinity keep their meaning.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_part = numba.njit(**_OPTIONS)
_loop = numba.njit(cache=True, **_OPTIONS)


@no_type_check
def _tile_of(n_rows):
    """An intrinsic for tiles of that many rows; see ``_add_tile``."""

    @intrinsic
    def add_tile(_, sums, row, column, left, left_row, panels, panel):
        lanes = VECTOR_BYTES // (sums.dtype.bitwidth // 8)

        def code(context, builder, signature, arguments):
            sums_, row_, column_, left_, left_row_, panels_, panel_ = arguments
            scalar = context.get_value_type(sums.dtype)
            vector, whole = ir.VectorType(scalar, lanes), ir.IntType(64)
            array = {
                "sums": cgutils.create_struct_proxy(signature.args[0])(context, builder, sums_),
                "left": cgutils.create_struct_proxy(signature.args[3])(context, builder, left_),
                "panels": cgutils.create_struct_proxy(signature.args[5])(context, builder, panels_),
            }
            width = cgutils.unpack_tuple(builder, array["sums"].shape)[1]
            depth = cgutils.unpack_tuple(builder, array["left"].shape)[1]

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
            starts = [builder.mul(builder.add(left_row_, whole(r)), depth) for r in range(n_rows)]
            panel_start = builder.mul(builder.mul(panel_, depth), whole(TILE_VECTORS * lanes))
            before = [load("sums", end) for end in ends]

            entry, loop, after = builder.block, builder.append_basic_block("sum"), builder.append_basic_block("store")
            builder.branch(loop)
            builder.position_at_end(loop)
            k = builder.phi(whole)
            running = [builder.phi(vector) for _ in cells]
            here = builder.add(panel_start, builder.mul(k, whole(TILE_VECTORS * lanes)))
            columns = [load("panels", builder.add(here, whole(v * lanes))) for v in range(TILE_VECTORS)]
            factors = [
                spread(builder.load(builder.gep(array["left"].data, [builder.add(start, k)]))) for start in starts
            ]
            total = [
                builder.fadd(builder.fmul(factors[r], columns[v], flags=["contract"]), so_far, flags=["contract"])
                for (r, v), so_far in zip(cells, running, strict=True)
            ]
            following = builder.add(k, whole(1))
            for phi, first, again in zip([k, *running], [whole(0), *before], [following, *total], strict=True):
                phi.add_incoming(first, entry)
                phi.add_incoming(again, loop)
            builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)

            builder.position_at_end(after)
            for end, value in zip(ends, total, strict=True):
                builder.store(value, place("sums", end)).align = sums.dtype.bitwidth // 8
            return context.get_dummy_value()

        index = types.intp
        return types.void(sums, index, index, left, index, panels, index), code

    return add_tile


_add_1, _add_2, _add_3, _add_4, _add_5 = (_tile_of(n_rows) for n_rows in range(1, TILE_ROWS + 1))


@_part
@no_type_check
def _add_products(sums, left, panels):
    """``sums[b, j] += sum_k left[b, k] matrix[k, j]``; sums is padded to whole panels."""
    batch, n_columns = left.shape[0], panels.shape[2]
    for panel in range(panels.shape[0]):
        column = panel * n_columns
        row = 0
        while row + 5 <= batch:
            _add_5(sums, row, column, left, row, panels, panel)
            row += 5
        if batch - row == 4:
            _add_4(sums, row, column, left, row, panels, panel)
        elif batch - row == 3:
            _add_3(sums, row, column, left, row, panels, panel)
        elif batch - row == 2:
            _add_2(sums, row, column, left, row, panels, panel)
        elif batch - row == 1:
            _add_1(sums, row, column, left, row, panels, panel)


@no_type_check
def packed(matrix):
    """The matrix as panels (panel, row, column within it), its last columns filled up with zeros."""
    n_columns = TILE_VECTORS * VECTOR_BYTES // matrix.itemsize
    n_rows, n = matrix.shape
    n_panels = -(-n // n_columns)
    wide = numpy.zeros((n_rows, n_panels * n_columns), dtype=matrix.dtype)
    wide[:, :n] = matrix
    return numpy.ascontiguousarray(wide.reshape(n_rows, n_panels, n_columns).transpose(1, 0, 2))


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
    """phi of a row in place; the same comparisons as torch's, so that NaN stays NaN and zero stays zero."""
    zero = a.dtype.type(0)
    if phi == MODRELU:
        for j in range(len(bias)):
            size = abs(a[j]) + bias[j]
            size = zero if size <= zero else size
            a[j] = size if a[j] > zero else -size if a[j] < zero else zero * a[j]
    elif phi == TANH:
        for j in range(len(bias)):
            a[j] = _tanh(a[j])
    elif phi == RELU:
        for j in range(len(bias)):
            a[j] = zero if a[j] <= zero else a[j]


@_loop
@no_type_check
def forward(drives, states, panels, bias, phi, keep, rate, lengths):
    """Fill ``states[1:]`` from ``states[0]``, with ``panels`` of V'; a state stays as it is after its length."""
    n_steps, batch, n = drives.shape
    sums = numpy.zeros((batch, panels.shape[0] * panels.shape[2]), drives.dtype)
    for t in range(n_steps):
        before, after = states[t], states[t + 1]
        for b in range(batch):
            for j in range(n):
                sums[b, j] = drives[t, b, j]
        _add_products(sums, before, panels)
        for b in range(batch):
            if t >= lengths[b]:
                after[b] = before[b]
                continue
            _apply(phi, sums[b], bias)
            if keep == 0 and rate == 1:  # zero times infinity must not come up
                after[b] = sums[b, :n]
            else:
                for j in range(n):
                    after[b, j] = keep * before[b, j] + rate * sums[b, j]


@_part
@no_type_check
def _times_slope(phi, value, out, by_bias, factor):
    """A row of gradients by phi's value becomes one by its argument; add to ``by_bias`` what a bias receives."""
    zero, one = out.dtype.type(0), out.dtype.type(1)
    if phi == MODRELU:
        for j in range(len(out)):
            out[j] = zero if value[j] == zero else factor * out[j]
            by_bias[j] += out[j] if value[j] > zero else -out[j]
    elif phi == TANH:
        for j in range(len(out)):
            out[j] *= factor * (one - value[j] * value[j])
    elif phi == RELU:
        for j in range(len(out)):
            out[j] = factor * out[j] if value[j] > zero else zero
    else:
        for j in range(len(out)):
            out[j] *= factor


@_loop
@no_type_check
def backward(values, by_drives, by_bias, rows, row_strides, now, panels, phi, keep, rate, lengths):
    """Fill ``by_drives``, and ``by_bias`` for each sample, from the gradients that came to the states from outside.

    Those lie in ``rows``, whose strides along time and batch are given, so that nobody has to put them in order first.
    ``now``, the gradient by the last state, becomes that by the first. ``values`` are phi's, ``panels`` of V.
    """
    n_steps, batch, n = by_drives.shape
    zero = by_drives.dtype.type(0)
    sums = numpy.zeros((batch, panels.shape[0] * panels.shape[2]), by_drives.dtype)
    for t in range(n_steps - 1, -1, -1):
        for b in range(batch):
            start = (t - 1) * row_strides[0] + b * row_strides[1]
            if t > 0:
                sums[b, :n] = rows[start : start + n]
            else:
                sums[b, :n] = zero
            if t >= lengths[b]:  # the state passed through unchanged
                by_drives[t, b] = zero
                for j in range(n):
                    sums[b, j] += now[b, j]
                continue
            by_drives[t, b] = now[b]
            _times_slope(phi, values[t, b], by_drives[t, b], by_bias[b], rate)
            if keep != 0:
                for j in range(n):
                    sums[b, j] += keep * now[b, j]
        _add_products(sums, by_drives[t], panels)
        for b in range(batch):
            now[b] = sums[b, :n]


@no_type_check
def has_code(function, arguments):
    """Whether the function is compiled for such arguments, here or in the cache on disk."""
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    if kinds in function.overloads:
        return True
    return function._cache.load_overload(kinds, function.targetctx) is not None
