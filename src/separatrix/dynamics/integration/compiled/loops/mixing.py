"""Weighted sums of blocks of memory that lie one after the other: stages of a step, and its error.

The blocks of a step are larger than the innermost cache, so that a sum costs what it reads. Here it runs along the
memory, which a processor fetches ahead, with the weights in registers.
"""

from __future__ import annotations

from typing import no_type_check

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .lanes import Lanes, everywhere, filled_lanes, load_lanes, store
from .layout import VECTOR_BYTES
from .making import kept_part, part


@no_type_check
def _sum_of(n_terms):
    """An intrinsic: ``w[out + i] = sum_s w[weights + s] w[first + s block + i]`` for i below ``length``, so many s."""

    @intrinsic
    def mixed(_, w, out, weights, first, block, length):
        lanes, align = VECTOR_BYTES * 8 // w.dtype.bitwidth, w.dtype.bitwidth // 8

        def code(context, builder, sig, args):
            data = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).data
            out_, weights_, first_, block_, length_ = args[1:]
            vector, index = context.get_value_type(Lanes(w.dtype)), ir.IntType(64)

            def vector_at(place):
                return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

            factors, starts = [], []
            for s in range(n_terms):
                number = builder.load(builder.gep(data, [builder.add(weights_, index(s))]))
                factors.append(everywhere(builder, vector, number))
                starts.append(builder.add(first_, builder.mul(block_, index(s))))
            with cgutils.for_range_slice(builder, index(0), length_, index(lanes)) as (i, _count):
                total = None
                for factor, start in zip(factors, starts, strict=True):
                    entry = builder.load(vector_at(builder.add(start, i)))
                    entry.align = align
                    term = builder.fmul(factor, entry, flags=["contract"])
                    total = term if total is None else builder.fadd(total, term, flags=["contract"])
                builder.store(total, vector_at(builder.add(out_, i))).align = align
            return context.get_dummy_value()

        index = types.intp
        return types.void(w, index, index, index, index, index), code

    return mixed


_sum_2, _sum_3, _sum_4, _sum_5, _sum_6, _sum_7 = (_sum_of(n_terms) for n_terms in range(2, 8))


@part
@no_type_check
def _sum_any(w, n_terms, out, weights, first, block, length):
    for i in range(0, length, VECTOR_BYTES // w.itemsize):
        total = filled_lanes(w.dtype.type(0))
        for s in range(n_terms):
            total = total + filled_lanes(w[weights + s]) * load_lanes(w, first + s * block + i)
        store(w, out + i, total)


@kept_part
@no_type_check
def mix(w, n_terms, out, weights, first, block, length):
    """``w[out + i] = sum over s < n_terms of w[weights + s] w[first + s block + i]``, i below ``length`` and a vector.

    Up to seven terms, as many as the pairs of order five need, have a loop of their own.
    """
    if n_terms == 2:
        _sum_2(w, out, weights, first, block, length)
    elif n_terms == 3:
        _sum_3(w, out, weights, first, block, length)
    elif n_terms == 4:
        _sum_4(w, out, weights, first, block, length)
    elif n_terms == 5:
        _sum_5(w, out, weights, first, block, length)
    elif n_terms == 6:
        _sum_6(w, out, weights, first, block, length)
    elif n_terms == 7:
        _sum_7(w, out, weights, first, block, length)
    else:
        _sum_any(w, n_terms, out, weights, first, block, length)


@part
@no_type_check
def copy(w, out, first, length):
    """``w[out + i] = w[first + i]``, i below ``length``, in whole vectors."""
    for i in range(0, length, VECTOR_BYTES // w.itemsize):
        store(w, out + i, load_lanes(w, first + i))
