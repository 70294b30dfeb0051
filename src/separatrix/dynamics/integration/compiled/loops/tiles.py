"""Products of matrices in tiles that stay in registers.

All four products of a velocity have one form, ``out[r, c] = start[r] + sum_l left[l, r] right[l, c]``. A compiler does
not find such tiles by itself, and a library call for such small matrices costs more than its work.
"""

from __future__ import annotations

from typing import no_type_check

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .lanes import Lanes, everywhere, filled_lanes, store
from .layout import TILE_ROWS, TILE_VECTORS, VECTOR_BYTES
from .making import part
from .powers import powers_of


@no_type_check
def _tile_of(n_vectors, powers):
    """An intrinsic: ``out[r, c] = start[r] + sum_l left[l, r] right[l, c]``, for four rows r, so many vectors of
    columns c, and ``depth`` terms l; all in ``w``, ``left`` given by its start, from term to term, and from row to row.

    With ``powers`` two to the power of that, and the sums over r are added to ``w[sums + c]``.
    """

    @intrinsic
    def tile(_, w, out, by_out, start, left, right, by_right, depth, sums):
        lanes, align = VECTOR_BYTES * 8 // w.dtype.bitwidth, w.dtype.bitwidth // 8

        def code(context, builder, sig, args):
            data = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).data
            out_, by_out_, start_, left_, right_, by_right_, depth_, sums_ = args[1:]
            first_left, by_term, by_row = cgutils.unpack_tuple(builder, left_)
            vector, index = context.get_value_type(Lanes(w.dtype)), ir.IntType(64)
            cells = [(r, v) for r in range(TILE_ROWS) for v in range(n_vectors)]

            def at(base, offset):
                return builder.gep(base, [offset])

            def vector_at(base, number):
                return builder.bitcast(at(base, index(number * lanes)), vector.as_pointer())

            def vector_of(base, number):
                value = builder.load(vector_at(base, number))
                value.align = align
                return value

            def number_at(pointer):
                return everywhere(builder, vector, builder.load(pointer))

            start_rows = [number_at(at(data, builder.add(start_, index(r)))) for r in range(TILE_ROWS)]
            lefts = [at(data, builder.add(first_left, builder.mul(index(r), by_row))) for r in range(TILE_ROWS)]
            rights = at(data, right_)
            entry, loop, after = builder.block, builder.append_basic_block("sum"), builder.append_basic_block("store")
            builder.branch(loop)
            builder.position_at_end(loop)
            term, here_left, here_right = builder.phi(index), builder.phi(index), builder.phi(rights.type)
            running = [builder.phi(vector) for _ in cells]
            columns = [vector_of(here_right, v) for v in range(n_vectors)]
            factors = [number_at(at(row, here_left)) for row in lefts]
            total = [
                builder.fadd(builder.fmul(factors[r], columns[v], flags=["contract"]), so_far, flags=["contract"])
                for (r, v), so_far in zip(cells, running, strict=True)
            ]
            following = builder.add(term, index(1))
            begin = [index(0), index(0), rights, *(start_rows[r] for r, _ in cells)]
            again = [following, builder.add(here_left, by_term), at(here_right, by_right_), *total]
            for phi, before, then in zip([term, here_left, here_right, *running], begin, again, strict=True):
                phi.add_incoming(before, entry)
                phi.add_incoming(then, loop)
            builder.cbranch(builder.icmp_signed("<", following, depth_), loop, after)
            builder.position_at_end(after)
            sums_at = at(data, sums_)
            so_far = [vector_of(sums_at, v) for v in range(n_vectors)] if powers else []
            for r in range(TILE_ROWS):
                row = at(data, builder.add(out_, builder.mul(index(r), by_out_)))
                values = total[r * n_vectors : (r + 1) * n_vectors]
                if powers:
                    values = powers_of(builder, values)
                    so_far = [builder.fadd(a, b) for a, b in zip(so_far, values, strict=True)]
                for v, value in enumerate(values):
                    builder.store(value, vector_at(row, v)).align = align
            for v, value in enumerate(so_far):
                builder.store(value, vector_at(sums_at, v)).align = align
            return context.get_dummy_value()

        place = types.UniTuple(types.intp, 3)
        index = types.intp
        return types.void(w, index, index, index, place, index, index, index, index), code

    return tile


_tile_1, _tile_2, _tile_3, _tile_4 = (_tile_of(n_vectors, False) for n_vectors in range(1, 5))
_powers_1, _powers_2, _powers_3, _powers_4 = (_tile_of(n_vectors, True) for n_vectors in range(1, 5))


@part
@no_type_check
def product(w, n_vectors, n_rows, out, by_out, start, next_start, left, right, by_right, depth):
    """Tiles of some vectors of columns, for all rows; those from ``n_rows`` to the end of a tile are computed too."""
    by_row = left[2]
    for r in range(0, n_rows, 4):
        row, first, here = out + r * by_out, start + r * next_start, (left[0] + r * by_row, left[1], by_row)
        if n_vectors == 4:
            _tile_4(w, row, by_out, first, here, right, by_right, depth, 0)
        elif n_vectors == 3:
            _tile_3(w, row, by_out, first, here, right, by_right, depth, 0)
        elif n_vectors == 2:
            _tile_2(w, row, by_out, first, here, right, by_right, depth, 0)
        else:
            _tile_1(w, row, by_out, first, here, right, by_right, depth, 0)


@part
@no_type_check
def softmax_powers(w, at, n_vectors, by, n, ld, state, d):
    """Two to the logits of a block, and their sums; the logits must not be so large that a power is no number."""
    lanes = VECTOR_BYTES // w.itemsize
    for v in range(n_vectors):
        store(w, at.scale + v * lanes, filled_lanes(w.dtype.type(0)))
    for j in range(0, n, 4):
        row, start, left = at.logits + j * by, at.logs + j, (at.keys + j, ld, 1)
        if n_vectors == 4:
            _powers_4(w, row, by, start, left, state, ld, d, at.scale)
        elif n_vectors == 3:
            _powers_3(w, row, by, start, left, state, ld, d, at.scale)
        elif n_vectors == 2:
            _powers_2(w, row, by, start, left, state, ld, d, at.scale)
        else:
            _powers_1(w, row, by, start, left, state, ld, d, at.scale)


@part
@no_type_check
def vectors_of(left_over, lanes):
    """Vectors of the next block, so that blocks are alike: a narrow one at the end would keep registers idle."""
    vectors = (left_over + lanes - 1) // lanes
    blocks = (vectors + TILE_VECTORS - 1) // TILE_VECTORS
    return (vectors + blocks - 1) // blocks
