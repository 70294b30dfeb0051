r"""Whole trajectories of plain self-attention, compiled by numba. Imported when they are first used, never before.

One call follows trajectories one after the other: steps of an explicit pair, control of their size, stops, watch for
returns and merging, as the pools of torch do (``stepping``, ``control``, ``stopping``, ``returns``, ``merging``). Where
something must be decided that is no ordinary step, the loop returns a code and its caller goes on.

Tokens are stored as columns, (d, tokens), filled up to whole vectors, with every array of a trajectory in one flat
piece of memory ``w`` that is used again by the next trajectory; nothing is allocated. All four products of a velocity,

.. math:: B = \beta \log_2 e\, M X, \quad \ell = B^\top X + \log_2 s, \quad Y = X\,2^{\ell - \max \ell}, \quad V Y,

have one form, ``out[r, c] = start[r] + sum_l left[l, r] right[l, c]``, computed in tiles of four rows and at most three
vectors of columns that stay in registers (``_tile_of``). A block of three vectors of queries runs through logits,
softmax in base 2 and both products while it lies in the innermost cache. Vectors are those of LLVM, because a compiler
does not find these by itself and a library call for such small matrices costs more than its work; on processors
without wide vectors LLVM splits them. The plain twins are ``AttentionFlow.velocity`` and the pools of torch; the tests
compare each part with them.

Everything that is compiled stands in this file: the cache on disk watches the file of the compiled function only.
"""

from __future__ import annotations

import functools
import operator
from collections import namedtuple
from typing import Any, no_type_check

import numba
import numpy
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from separatrix.core.arithmetic.keeping import kept

_features = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _features.get("avx512f") else 32 if _features.get("avx") else 16
TILE_ROWS, TILE_VECTORS = 4, 3
"""Twelve sums, three vectors of columns and one number: sixteen registers."""

MODERATE = 60.0
"""Logits, in base 2, up to which powers need no largest one taken away: even a sum of 2^60 of them is a number."""

# Fused multiply-add; NaN and infinity keep their meaning. The order of sums is free only where no vector is written
# out: rounding to whole numbers in ``_power`` would be simplified away.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INSIDE: Any = {**_OPTIONS, "no_cpython_wrapper": True}  # called by compiled code alone
_part = numba.njit(fastmath={"contract", "nsz", "arcp"}, **_INSIDE)
_plain = numba.njit(fastmath={"contract", "nsz", "arcp", "reassoc"}, **_INSIDE)
# numba makes machine code of every function together with all that it calls, so a chain of calls is optimised as often
# as it has links. What lies between ``carry`` and a step is written into it: a third less time to compile it.
_inlined = numba.njit(fastmath={"contract", "nsz", "arcp"}, inline="always", **_INSIDE)
# What is called from outside, by the tests if by nobody else, is kept on disk.
_kept_part = kept(fastmath={"contract", "nsz", "arcp"}, **_OPTIONS)
_kept_plain = kept(fastmath={"contract", "nsz", "arcp", "reassoc"}, **_OPTIONS)

RESTING, OVER, BROKEN, SLOW, SMALL, CROSSING = range(1, 7)
"""Why a trajectory came back: it may have arrived; time or steps are over; it is lost; float32 is too coarse from here;
somebody must look why steps are small; it crosses the section of its anchor in the next step."""

TIME, SIZE, ERROR, THRESHOLD, UNIT, LIMIT, SPEED, HEIGHT, EXTENT, SINCE, N_NUMBERS = range(11)
"""Columns of ``numbers``: as the fields of ``Pool`` and ``Anchor``; a step of size zero is chosen by the loop."""
ROWS, STEPS, REJECTED, UNTIL, WATCH, ANCHORED, CODE, N_COUNTS = range(8)
"""Columns of ``counts``: rows; attempted and rejected steps; when an anchor is renewed; steps from which returns are
watched; whether there is an anchor; the code at the end."""

Places = namedtuple(
    "Places",
    "block depth length x next slopes keys logits mean pull scale logs live filled scaled zeros coupling value anchor "
    "heading",
)
"""Where each array starts in ``w``; the length of a state in it, and the dimension filled up to whole tiles."""
Rules = namedtuple(
    "Rules",
    "order rtol atol farthest grow first safety shrink smallest rearm_above rearm_to distance floor small turn old "
    "looks implicit watches max_steps round merge_after",
)
"""What decides, as floats: see the constants of the same meaning in the files that the first lines name."""


MERGE_VECTORS = 7
"""Vectors that merging works with."""


# Vectors as values.


class Lanes(types.Type):
    """A vector of the processor, of numbers of one kind."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        scalar = ir.FloatType() if kind.dtype.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(scalar, VECTOR_BYTES * 8 // kind.dtype.bitwidth))


def _arithmetic(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class _Typed(AbstractTemplate):
        @no_type_check
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    @lower_builtin(symbol, Lanes, Lanes)
    @no_type_check
    def _lowered(context, builder, sig, args):
        return getattr(builder, instruction)(*args, flags=["contract"])


for _symbol, _instruction in zip(["add", "sub", "mul", "truediv"], ["fadd", "fsub", "fmul", "fdiv"], strict=True):
    _arithmetic(getattr(operator, _symbol), _instruction)


@no_type_check
def _pointer(context, builder, array_type, array, index):
    """To the vector that starts at an index of a flat array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    vector = context.get_value_type(Lanes(array_type.dtype))
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@no_type_check
def _everywhere(builder, vector, number):
    lone = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), None)
    return builder.shuffle_vector(lone, ir.Constant(vector, ir.Undefined), zeros)


@intrinsic
@no_type_check
def _load(_, w, index):
    """The vector at an index of ``w``."""

    def code(context, builder, sig, args):
        value = builder.load(_pointer(context, builder, sig.args[0], *args))
        value.align = w.dtype.bitwidth // 8
        return value

    return Lanes(w.dtype)(w, types.intp), code


@intrinsic
@no_type_check
def _store(_, w, index, value):
    """Put a vector to an index of ``w``."""

    def code(context, builder, sig, args):
        place = _pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], place).align = w.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(w, types.intp, value), code


@intrinsic
@no_type_check
def _spread(_, number):
    """A vector of one number."""

    def code(context, builder, sig, args):
        return _everywhere(builder, context.get_value_type(sig.return_type), args[0])

    return Lanes(number)(number), code


@intrinsic
@no_type_check
def _larger(_, a, b):
    """The larger of each pair; b where one is not a number."""

    def code(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, b), code


@intrinsic
@no_type_check
def _root(_, a):
    """Square roots."""

    def code(context, builder, sig, args):
        vector = args[0].type
        name = f"llvm.sqrt.v{vector.count}f{a.dtype.bitwidth}"
        return builder.call(
            cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name), args
        )

    return a(a), code


EXPONENTIAL = {
    32: (
        1.000000071655217,
        0.6931469670655763,
        0.2402211972345649,
        0.055507132721052975,
        0.009675541347603274,
        0.0013276472461252317,
    ),
    64: (
        1.0,
        0.6931471805599453,
        0.24022650695910155,
        0.055504108664819925,
        0.009618129107588335,
        0.0013333558146789968,
        0.00015403530462514538,
        1.52527334899432e-05,
        1.3215433089634406e-06,
        1.0178198040514867e-07,
        7.074105619781021e-09,
        4.435279885061917e-10,
    ),
}
"""Polynomials that are nearest to 2^r for |r| <= 1/2 relative to it, by Remez exchange: 7.5e-8 and 3.1e-18."""


@no_type_check
def _power(builder, x):
    """2^x of a vector, for x up to 127; what is below the smallest normal number becomes that, and NaN stays NaN.

    Adding 1.5 2^(mantissa bits) rounds to a whole number and leaves it in the lowest bits, from where it is shifted
    into the exponent.
    """
    vector = x.type
    bits, mantissa, lowest = (32, 23, -126.0) if isinstance(vector.element, ir.FloatType) else (64, 52, -1022.0)
    whole = ir.VectorType(ir.IntType(bits), vector.count)

    def all_of(number, kind=vector):
        return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)

    x = builder.select(builder.fcmp_ordered("<", x, all_of(lowest)), all_of(lowest), x)
    rounding = all_of(1.5 * 2.0**mantissa)
    shifted = builder.fadd(x, rounding)
    rest = builder.fsub(x, builder.fsub(shifted, rounding))
    value = all_of(EXPONENTIAL[bits][-1])
    for coefficient in EXPONENTIAL[bits][-2::-1]:
        product = builder.fmul(value, rest, flags=["contract"])
        value = builder.fadd(product, all_of(coefficient), flags=["contract"])
    exponent = builder.shl(builder.bitcast(shifted, whole), all_of(mantissa, whole))
    return builder.bitcast(builder.add(builder.bitcast(value, whole), exponent), vector)


@intrinsic
@no_type_check
def exp2(_, a):
    """Powers of two (``_power``)."""

    def code(context, builder, sig, args):
        return _power(builder, args[0])

    return a(a), code


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

            def load(base, number):
                value = builder.load(vector_at(base, number))
                value.align = align
                return value

            def spread(pointer):
                return _everywhere(builder, vector, builder.load(pointer))

            start_rows = [spread(at(data, builder.add(start_, index(r)))) for r in range(TILE_ROWS)]
            lefts = [at(data, builder.add(first_left, builder.mul(index(r), by_row))) for r in range(TILE_ROWS)]
            rights = at(data, right_)
            entry, loop, after = builder.block, builder.append_basic_block("sum"), builder.append_basic_block("store")
            builder.branch(loop)
            builder.position_at_end(loop)
            term, here_left, here_right = builder.phi(index), builder.phi(index), builder.phi(rights.type)
            running = [builder.phi(vector) for _ in cells]
            columns = [load(here_right, v) for v in range(n_vectors)]
            factors = [spread(at(row, here_left)) for row in lefts]
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
            if powers:
                total = [_power(builder, value) for value in total]
                for v in range(n_vectors):
                    place, so_far = vector_at(at(data, sums_), v), load(at(data, sums_), v)
                    for r in range(TILE_ROWS):
                        so_far = builder.fadd(so_far, total[r * n_vectors + v])
                    builder.store(so_far, place).align = align
            for r in range(TILE_ROWS):
                row = at(data, builder.add(out_, builder.mul(index(r), by_out_)))
                for v in range(n_vectors):
                    builder.store(total[r * n_vectors + v], vector_at(row, v)).align = align
            return context.get_dummy_value()

        place = types.UniTuple(types.intp, 3)
        index = types.intp
        return types.void(w, index, index, index, place, index, index, index, index), code

    return tile


_tile_1, _tile_2, _tile_3 = (_tile_of(n_vectors, False) for n_vectors in (1, 2, 3))
_powers_1, _powers_2, _powers_3 = (_tile_of(n_vectors, True) for n_vectors in (1, 2, 3))


# The velocity.


@_part
@no_type_check
def _product(w, n_vectors, n_rows, out, by_out, start, next_start, left, right, by_right, depth):
    """Tiles of some vectors of columns, for all rows; those from ``n_rows`` to the end of a tile are computed too."""
    by_row = left[2]
    for r in range(0, n_rows, 4):
        row, first, here = out + r * by_out, start + r * next_start, (left[0] + r * by_row, left[1], by_row)
        if n_vectors == 3:
            _tile_3(w, row, by_out, first, here, right, by_right, depth, 0)
        elif n_vectors == 2:
            _tile_2(w, row, by_out, first, here, right, by_right, depth, 0)
        else:
            _tile_1(w, row, by_out, first, here, right, by_right, depth, 0)


@_part
@no_type_check
def _powers(w, at, n_vectors, by, n, ld, state, d):
    """Two to the logits of a block, and their sums; the logits must not be so large that a power is no number."""
    lanes = VECTOR_BYTES // w.itemsize
    for v in range(n_vectors):
        _store(w, at.scale + v * lanes, _spread(w.dtype.type(0)))
    for j in range(0, n, 4):
        row, start, left = at.logits + j * by, at.logs + j, (at.keys + j, ld, 1)
        if n_vectors == 3:
            _powers_3(w, row, by, start, left, state, ld, d, at.scale)
        elif n_vectors == 2:
            _powers_2(w, row, by, start, left, state, ld, d, at.scale)
        else:
            _powers_1(w, row, by, start, left, state, ld, d, at.scale)


@_part
@no_type_check
def _soften(w, at, n_vectors, by, n):
    """Logits of a block to powers of two below their largest, and the sums of these."""
    lanes = VECTOR_BYTES // w.itemsize
    for first in range(at.logits, at.logits + n_vectors * lanes, lanes):
        top = _load(w, first)
        for j in range(1, n):
            top = _larger(_load(w, first + j * by), top)
        total = _spread(w.dtype.type(0))
        for j in range(n):
            power = exp2(_load(w, first + j * by) - top)
            _store(w, first + j * by, power)
            total = total + power
        _store(w, at.scale + first - at.logits, total)


@_part
@no_type_check
def _are_moderate(w, at, d, n, ld):
    """Whether no logit can be so large that the powers of two of a row, or their sum, are no numbers."""
    most = _load(w, at.logs)
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = _spread(w.dtype.type(0))
        for k in range(d):
            entry = _load(w, at.keys + k * ld + column)
            square = square + entry * entry
        most = _larger(_root(square) + _larger(_load(w, at.logs + column), _spread(w.dtype.type(0))), most)
    _store(w, at.scale, most)
    for i in range(VECTOR_BYTES // w.itemsize):  # noqa: SIM110 (generators are not compiled)
        if not w[at.scale + i] < MODERATE:
            return False
    return True


@_part
@no_type_check
def _tangent(w, at, n_vectors, by, state, slope, ld, column, d):
    """The pull of a block without what points along the tokens."""
    lanes = VECTOR_BYTES // w.itemsize
    for v in range(n_vectors):
        here = column + v * lanes
        scale, along = _load(w, at.live + here) / _load(w, at.scale + v * lanes), _spread(w.dtype.type(0))
        for k in range(d):
            along = along + _load(w, state + k * ld + here) * _load(w, at.pull + k * by + v * lanes)
        along = along * scale
        for k in range(d):
            pull = _load(w, at.pull + k * by + v * lanes) * scale
            _store(w, slope + k * ld + here, pull - _load(w, state + k * ld + here) * along)


@_part
@no_type_check
def _vectors_of(left_over, lanes):
    """Vectors of the next block, so that blocks are alike: a narrow one at the end would keep registers idle."""
    vectors = (left_over + lanes - 1) // lanes
    blocks = (vectors + TILE_VECTORS - 1) // TILE_VECTORS
    return (vectors + blocks - 1) // blocks


@_kept_part
@no_type_check
def velocity(w, at, d, n, ld, state, slope):
    """Of the n tokens at ``state``, to ``slope``; both have rows of length ``ld``."""
    lanes = VECTOR_BYTES // w.itemsize
    by, column = TILE_VECTORS * lanes, 0
    coupling, value, tokens = (at.coupling, at.depth, 1), (at.value, at.depth, 1), (state, 1, ld)
    while column < n:
        n_vectors = _vectors_of(n - column, lanes)
        _product(w, n_vectors, d, at.keys + column, ld, at.zeros, 0, coupling, state + column, ld, d)
        column += n_vectors * lanes
    moderate, column = _are_moderate(w, at, d, n, ld), 0
    while column < n:
        n_vectors = _vectors_of(n - column, lanes)
        if moderate:
            _powers(w, at, n_vectors, by, n, ld, state + column, d)
        else:
            _product(w, n_vectors, n, at.logits, by, at.logs, 1, (at.keys, ld, 1), state + column, ld, d)
            _soften(w, at, n_vectors, by, n)
        _product(w, n_vectors, d, at.mean, by, at.zeros, 0, tokens, at.logits, by, n)
        _product(w, n_vectors, d, at.pull, by, at.zeros, 0, value, at.mean, by, d)
        _tangent(w, at, n_vectors, by, state, slope, ld, column, d)
        column += n_vectors * lanes


# A step.


@_part
@no_type_check
def _largest(w, scratch, worst, total):
    """Of squares in a vector, as float64; NaN if the sum of all of them is."""
    lanes = VECTOR_BYTES // w.itemsize
    _store(w, scratch, worst)
    _store(w, scratch + lanes, total)
    largest, everything = 0.0, 0.0
    for i in range(lanes):
        largest = max(largest, float(w[scratch + i]))
        everything += float(w[scratch + lanes + i])
    return largest + 0.0 * everything


@_kept_part
@no_type_check
def _speed(w, at, d, n, ld, slope):
    """Of the fastest token."""
    worst = total = _spread(w.dtype.type(0))
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = _spread(w.dtype.type(0))
        for k in range(d):
            entry = _load(w, slope + k * ld + column)
            square = square + entry * entry
        worst, total = _larger(square, worst), total + square
    return numpy.sqrt(_largest(w, at.scale, worst, total))


@_part
@no_type_check
def _scale_weights(w, at, table, row, size):
    """The weights of the slopes in a row of the tableau, times the step size."""
    for s in range(table.shape[1]):
        w[at.scaled + s] = size * table[row, s]


@_part
@no_type_check
def _propose(w, at, d, n, ld, n_slopes):
    """The next stage on the sphere, from the weighted slopes before it."""
    one = _spread(w.dtype.type(1))
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = _load(w, at.filled + column)
        for k in range(d):
            place = k * ld + column
            entry = _load(w, at.x + place)
            for s in range(n_slopes):
                entry = entry + _spread(w[at.scaled + s]) * _load(w, at.slopes + s * at.block + place)
            _store(w, at.next + place, entry)
            square = square + entry * entry
        scale = one / _root(square)
        for k in range(d):
            place = at.next + k * ld + column
            _store(w, place, _load(w, place) * scale)


@_part
@no_type_check
def _error(w, at, d, n, ld, n_slopes):
    """Largest estimated error of a token, from all weighted slopes."""
    worst = total = _spread(w.dtype.type(0))
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = _spread(w.dtype.type(0))
        for k in range(d):
            entry = _spread(w.dtype.type(0))
            for s in range(n_slopes):
                entry = entry + _spread(w[at.scaled + s]) * _load(w, at.slopes + s * at.block + k * ld + column)
            square = square + entry * entry
        worst, total = _larger(square, worst), total + square
    return numpy.sqrt(_largest(w, at.scale, worst, total))


@_kept_part
@no_type_check
def attempt(w, at, table, d, n, ld, h):
    """All stages of a step from ``x``, whose velocity is the first slope; the last lies at ``next``.

    ``table`` holds the rows of the tableau and, at the end, that of the error, whose size is returned.
    """
    n_stages = table.shape[1]
    size = w.dtype.type(h)
    for i in range(1, n_stages):
        _scale_weights(w, at, table, i, size)
        _propose(w, at, d, n, ld, i)
        velocity(w, at, d, n, ld, at.next, at.slopes + i * at.block)
    _scale_weights(w, at, table, n_stages, size)
    return _error(w, at, d, n, ld, n_stages)


@_part
@no_type_check
def _anchored(w, at, d, ld, numbers, counts, b):
    """Remember the present state, to recognise a return."""
    for i in range(d * ld):
        w[at.anchor + i] = w[at.x + i]
        w[at.heading + i] = w[at.slopes + i]
    numbers[b, SINCE], numbers[b, HEIGHT], numbers[b, EXTENT] = numbers[b, TIME], 0.0, 0.0
    counts[b, UNTIL] = 2 * max(counts[b, STEPS], 1)
    counts[b, ANCHORED] = 1


@_plain
@no_type_check
def _away(w, at, d, n, ld):
    """Height of the proposed state over the section of the anchor, and the distance from it."""
    height, square = 0.0, 0.0
    for k in range(d):
        for i in range(k * ld, k * ld + n):
            move = float(w[at.next + i]) - float(w[at.anchor + i])
            height += move * float(w[at.heading + i])
            square += move * move
    return height, numpy.sqrt(square)


@_part
@no_type_check
def _next_size(rules, h, error, accepted, last):
    """Size of the next step, and the error to remember (``DisplacementControl.next_size``)."""
    safe = min(max(error, 1e-10), 1e10) if error == error else 1e10
    if accepted:
        factor = rules.safety * safe ** (-0.7 / rules.order) * last ** (0.4 / rules.order)
        return h * min(max(factor, rules.shrink), rules.grow), max(safe, 1e-4)
    return h * min(max(rules.safety * safe ** (-1.0 / rules.order), rules.shrink), 1.0), last


@_part
@no_type_check
def _accept(w, at, n_stages, d, n, ld, numbers, b):
    """The proposal becomes the state, and its velocity the first slope."""
    last = at.slopes + (n_stages - 1) * at.block
    for i in range(d * ld):
        w[at.x + i] = w[at.next + i]
        w[at.slopes + i] = w[last + i]
    numbers[b, SPEED] = _speed(w, at, d, n, ld, at.slopes)


@_inlined
@no_type_check
def _step(w, at, rules, table, d, n, ld, numbers, counts, b):
    """One attempted step (``stepping.advance``); returns a code if the trajectory needs attention, else zero."""
    left = numbers[b, LIMIT] - numbers[b, TIME]
    wanted = numbers[b, SIZE]
    last = wanted >= left
    h = left if last else wanted
    largest = attempt(w, at, table, d, n, ld, h)
    allowed = rules.rtol * min(h * numbers[b, SPEED], rules.farthest) + rules.atol * numbers[b, UNIT] * h
    error = largest / max(allowed, 1e-300)
    accepted = error <= 1.0
    if accepted and counts[b, ANCHORED] == 1:
        height, distance = _away(w, at, d, n, ld)
        if numbers[b, HEIGHT] < 0.0 and height >= 0.0:
            return CROSSING
        numbers[b, HEIGHT], numbers[b, EXTENT] = height, max(numbers[b, EXTENT], distance)
    size, numbers[b, ERROR] = _next_size(rules, h, error, accepted, numbers[b, ERROR])
    counts[b, STEPS] += 1
    if accepted:
        # A step cut short to end on a requested time says nothing against the longer one tried before.
        numbers[b, SIZE] = max(wanted, size) if last else size
        numbers[b, TIME] = numbers[b, LIMIT] if last else numbers[b, TIME] + h
        _accept(w, at, table.shape[1], d, n, ld, numbers, b)
    else:
        numbers[b, SIZE] = size
        counts[b, REJECTED] += 1
    if counts[b, ANCHORED] == 1 and counts[b, STEPS] >= counts[b, UNTIL]:
        _anchored(w, at, d, ld, numbers, counts, b)
    return _ended(rules, numbers, counts, b)


@_part
@no_type_check
def _ended(rules, numbers, counts, b):
    """Code of a trajectory that may be at its end (``Rest``, ``Ends.left``), else zero."""
    speed = numbers[b, SPEED]
    ratio = speed / numbers[b, UNIT]
    if numbers[b, THRESHOLD] == 0.0 and ratio > rules.rearm_above:
        numbers[b, THRESHOLD] = rules.rearm_to
    if not speed < numpy.inf or numbers[b, SIZE] < rules.smallest / numbers[b, UNIT]:
        return BROKEN
    if ratio < numbers[b, THRESHOLD] or speed == 0.0:
        return RESTING
    if numbers[b, TIME] >= numbers[b, LIMIT] or counts[b, STEPS] >= rules.max_steps:
        return OVER
    return 0


# Merging.


@_part
@no_type_check
def _root_of(roots, i):
    while roots[i] != i:
        i = roots[i]
    return i


@_kept_part
@no_type_check
def _cluster(w, at, d, n, ld, distance, sizes, b, roots):
    """Single linkage: for each row the smallest index of its cluster; returns how many there are.

    Rows that stand for nothing join the first.
    """
    limit = w.dtype.type(distance) * w.dtype.type(distance)
    for i in range(n):
        roots[i] = i
        if sizes[b, i] == 0:
            roots[i] = 0
            continue
        for column in range(0, i, VECTOR_BYTES // w.itemsize):
            square = _spread(w.dtype.type(0))
            for k in range(d):
                away = _load(w, at.x + k * ld + column) - _spread(w[at.x + k * ld + i])
                square = square + away * away
            _store(w, at.logits + column, square)
        for j in range(i):
            if w[at.logits + j] < limit and sizes[b, j] > 0:
                one, other = _root_of(roots, i), _root_of(roots, j)
                roots[max(one, other)] = min(one, other)
    count = 0
    for i in range(n):
        roots[i] = _root_of(roots, i)
        count += roots[i] == i
    return count


@_kept_plain
@no_type_check
def _means(w, at, d, n, ld, sizes, b, roots, f, totals):
    """Mean directions of clusters in float64, (row of the root, d) in ``f``, and their sizes."""
    for i in range(n):
        totals[i] = 0.0
        for k in range(d):
            f[i * d + k] = 0.0
    for i in range(n):
        totals[roots[i]] += sizes[b, i]
        for k in range(d):
            f[roots[i] * d + k] += float(sizes[b, i]) * float(w[at.x + k * ld + i])
    for i in range(n):
        square = 0.0
        for k in range(d):
            square += f[i * d + k] * f[i * d + k]
        if square > 0.0:
            for k in range(d):
                f[i * d + k] /= numpy.sqrt(square)


@_plain
@no_type_check
def _attended(exact, which, d, n, f, totals, roots, a, weights, mean, query):
    """Attention of cluster a: the weights of all clusters, and their mean."""
    for j in range(d):
        query[j] = mean[j] = 0.0
    for k in range(d):
        for j in range(d):
            query[j] += f[a * d + k] * exact[which, 0, k, j]
    top = -numpy.inf
    for i in range(n):
        if roots[i] == i:
            weights[i] = 0.0
            for k in range(d):
                weights[i] += query[k] * f[i * d + k]
            top = max(top, weights[i])
    total = 0.0
    for i in range(n):
        if roots[i] == i:
            weights[i] = totals[i] * numpy.exp(weights[i] - top)
            total += weights[i]
    for i in range(n):
        if roots[i] == i:
            weights[i] /= total
            for k in range(d):
                mean[k] += weights[i] * f[i * d + k]


@_plain
@no_type_check
def _spread_of(d, n, f, roots, weights, mean, matrix):
    """Covariance of the attention of a cluster."""
    for k in range(d):
        for j in range(d):
            matrix[k, j] = -mean[k] * mean[j]
    for i in range(n):
        if roots[i] == i:
            for k in range(d):
                for j in range(d):
                    matrix[k, j] += weights[i] * f[i * d + k] * f[i * d + j]


@_plain
@no_type_check
def _times(d, left, right, out):
    """``left right``."""
    for i in range(d):
        for j in range(d):
            out[i, j] = 0.0
        for k in range(d):
            for j in range(d):
                out[i, j] += left[i, k] * right[k, j]


@_plain
@no_type_check
def _times_transposed(d, left, right, out):
    """``left right'``."""
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += left[i, k] * right[j, k]
            out[i, j] = total


@_plain
@no_type_check
def _is_positive(d, matrix):
    """Whether a symmetric matrix is positive definite, by its Cholesky factor, which replaces it."""
    for j in range(d):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0.0:
            return False
        pivot = numpy.sqrt(pivot)
        matrix[j, j] = pivot
        for i in range(j + 1, d):
            entry = matrix[i, j]
            for k in range(j):
                entry -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = entry / pivot
    return True


@_kept_plain
@no_type_check
def contracts(exact, bounds, which, d, n, f, totals, roots, a, vectors, squares):
    r"""Whether all differences inside cluster a decay: its transversal block has a negative symmetric part.

    With C the covariance of its attention and :math:`\gamma = w^\top V m`, the block is
    :math:`P (\beta V C M^\top - \gamma) P` (``stability.transversal_blocks``, where it is found by a derivative). Its
    first part is at most :math:`|V| |\beta M| (1 - |m|^2)`, which often settles it. Along the token itself a number is
    put that decides nothing.
    """
    weights, mean = vectors[0], vectors[1]
    _attended(exact, which, d, n, f, totals, roots, a, weights, mean, vectors[3])
    gamma, lack, axis = 0.0, 1.0, vectors[2]
    for k in range(d):
        axis[k] = f[a * d + k]
        lack -= mean[k] * mean[k]
        inner = 0.0
        for j in range(d):
            inner += exact[which, 1, k, j] * mean[j]
        gamma += axis[k] * inner
    if gamma > 1.001 * bounds[which] * max(lack, 1e-14):
        return True
    block, other = squares[0], squares[1]
    _spread_of(d, n, f, roots, weights, mean, block)
    _times(d, exact[which, 1], block, other)
    _times_transposed(d, other, exact[which, 0], block)
    return _is_positive(d, _negated(d, block, gamma, axis, vectors[3], other))


@_plain
@no_type_check
def _negated(d, block, gamma, axis, inner, out):
    """``gamma P - P sym(block) P + c x x'`` with a positive c as large as the rest."""
    size = abs(gamma)
    for k in range(d):
        inner[k] = 0.0
        for j in range(d):
            inner[k] += 0.5 * (block[k, j] + block[j, k]) * axis[j]
            size += abs(block[k, j])
    along = 0.0
    for k in range(d):
        along += axis[k] * inner[k]
    for k in range(d):
        for j in range(d):
            kept = 0.5 * (block[k, j] + block[j, k]) - axis[k] * inner[j] - inner[k] * axis[j]
            kept += along * axis[k] * axis[j]
            out[k, j] = (size - gamma) * axis[k] * axis[j] - kept
        out[k, k] += gamma
    return out


@_inlined
@no_type_check
def _keep_contracting(exact, bounds, which, d, n, f, totals, roots, vectors, squares):
    """Dissolve the clusters that do not contract; returns how many rows there are then."""
    for a in range(n):
        if roots[a] == a and _has_others(roots, a, n):
            vectors[4, a] = 1.0 if contracts(exact, bounds, which, d, n, f, totals, roots, a, vectors, squares) else 0.0
        else:
            vectors[4, a] = 1.0
    count = 0
    for i in range(n):
        if vectors[4, roots[i]] == 0.0:
            vectors[5, i] = 1.0
        else:
            vectors[5, i] = 0.0
    for i in range(n):
        if vectors[5, i] == 1.0:
            roots[i] = i
        count += roots[i] == i
    return count


@_part
@no_type_check
def _has_others(roots, a, n):
    for i in range(a + 1, n):  # noqa: SIM110 (generators are not compiled)
        if roots[i] == a:
            return True
    return False


@_part
@no_type_check
def row_length(lanes, n):
    """Tokens filled up to whole vectors and tiles; one vector more where rows would collide in a cache."""
    unit = max(lanes, TILE_ROWS)
    length = (n + unit - 1) // unit * unit
    return length + unit if length * (VECTOR_BYTES // lanes) % 1024 == 0 else length


@_kept_part
@no_type_check
def _put_rows(w, at, d, n, tokens, sizes, b):
    """Rows with their sizes as the state; returns the length of the rows of ``w``."""
    ld = row_length(VECTOR_BYTES // w.itemsize, n)
    for i in range(d * ld):
        w[at.x + i] = 0
        w[at.next + i] = 0
    for j in range(ld):
        lives = j < n and sizes[b, j] > 0
        w[at.live + j] = 1 if lives else 0
        w[at.filled + j] = 0 if j < n else 1
        w[at.logs + j] = numpy.log2(sizes[b, j]) if lives else w.dtype.type(-1e30)
    for j in range(n):
        for k in range(d):
            w[at.x + k * ld + j] = tokens[b, j, k]
    return ld


@_inlined
@no_type_check
def _merge(
    w, at, rules, d, n, ld, tokens, sizes, labels, exact, bounds, which, numbers, counts, b, f, vectors, squares, ints
):
    """Carry on tokens that stay together as one row, where that halves the rows; returns how many there are.

    As ``Merging.merge`` does, only looked at more often and without place holders.
    """
    if n < 3 or not rules.distance > 0.0 or not numbers[b, THRESHOLD] > 0.0:
        return n
    roots, place = ints[0], ints[1]
    if 2 * _cluster(w, at, d, n, ld, rules.distance, sizes, b, roots) > n:
        return n
    _means(w, at, d, n, ld, sizes, b, roots, f, vectors[6])
    m = _keep_contracting(exact, bounds, which, d, n, f, vectors[6], roots, vectors, squares)
    if 2 * m > n:
        return n
    _means(w, at, d, n, ld, sizes, b, roots, f, vectors[6])
    m = 0
    for i in range(n):
        if roots[i] == i:
            place[i] = m
            for k in range(d):
                tokens[b, m, k] = f[i * d + k]
            sizes[b, m] = vectors[6, i]
            m += 1
    for i in range(labels.shape[1]):
        labels[b, i] = place[roots[labels[b, i]]]
    counts[b, ANCHORED] = 0
    return m


# Trajectories.


@_part
@no_type_check
def _sort(w, rules, d, n, numbers, counts, b):
    """Code of a trajectory that a pool of torch would look at between two rounds (``Run._sorted``), else zero."""
    h, speed, unit = numbers[b, SIZE], numbers[b, SPEED], numbers[b, UNIT]
    small = h * unit < rules.small or (counts[b, STEPS] >= rules.old and h * speed < rules.turn)
    small = small and rules.looks > 0
    if w.itemsize == 4 and (small or speed / unit < rules.floor):
        return SLOW
    if w.itemsize == 8 and small and n * d <= rules.implicit:
        return SMALL
    return 0


@_inlined
@no_type_check
def _begin(w, at, rules, d, n, ld, numbers, counts, b):
    """Velocity and speed of the rows that were put; the first size of a step if there is none."""
    velocity(w, at, d, n, ld, at.x, at.slopes)
    numbers[b, SPEED] = _speed(w, at, d, n, ld, at.slopes)
    if numbers[b, SIZE] == 0.0:
        numbers[b, SIZE] = rules.first / max(numbers[b, SPEED], 0.1 * numbers[b, UNIT])


@_inlined
@no_type_check
def _follow(
    w, at, rules, table, d, tokens, sizes, labels, exact, bounds, which, numbers, counts, b, f, vectors, squares, ints
):
    """Rounds of steps until a trajectory needs attention; returns the length of its rows in ``w``."""
    n = counts[b, ROWS]
    ld = row_length(VECTOR_BYTES // w.itemsize, n)
    while True:
        for step in range(1, int(rules.round) + 1):
            counts[b, CODE] = _step(w, at, rules, table, d, n, ld, numbers, counts, b)
            if counts[b, CODE] != 0:
                return ld
            if step % int(rules.merge_after) != 0:
                continue
            m = _merge(
                w, at, rules, d, n, ld, tokens, sizes, labels, exact, bounds, which, numbers, counts, b, f, vectors,
                squares, ints,
            )  # fmt: skip
            if m < n:
                n = counts[b, ROWS] = m
                ld = _put_rows(w, at, d, n, tokens, sizes, b)
                _begin(w, at, rules, d, n, ld, numbers, counts, b)
        counts[b, CODE] = _sort(w, rules, d, n, numbers, counts, b)
        if counts[b, CODE] != 0:
            return ld
        if rules.watches > 0 and counts[b, ANCHORED] == 0 and counts[b, STEPS] >= counts[b, WATCH]:
            _anchored(w, at, d, ld, numbers, counts, b)


@_kept_part
@no_type_check
def _put_weights(w, at, d, exact, which, factor):
    """Both matrices with rows and columns exchanged; the coupling for logarithms in base 2."""
    for i in range(d):
        for j in range(d):
            w[at.coupling + j * at.depth + i] = factor * exact[which, 0, i, j]
            w[at.value + j * at.depth + i] = exact[which, 1, i, j]


@_part
@no_type_check
def _exchange(w, start, d, n, ld, rows, b, out):
    """Columns at ``start`` to rows, or rows to columns."""
    for j in range(n):
        for k in range(d):
            if out:
                rows[b, j, k] = w[start + k * ld + j]
            else:
                w[start + k * ld + j] = rows[b, j, k]


@_kept_part
@no_type_check
def carry(
    first,
    last,
    w,
    at,
    rules,
    table,
    tokens,
    velocities,
    anchors,
    headings,
    sizes,
    labels,
    exact,
    bounds,
    which,
    numbers,
    counts,
    f,
    vectors,
    squares,
    ints,
):
    """Follow the trajectories first to last - 1 until each needs attention; everything is changed in place.

    Args:
        first, last: which of them.
        w, at: working memory, filled with zeros before its first use, and where things lie in it.
        rules, table: what decides; the tableau, its error weights in the last row.
        tokens, velocities: rows (trajectories, rows, d) and, at the end, their velocities.
        anchors, headings: the same of the anchors, if there are any.
        sizes, labels: how many tokens each row stands for, and the row of each of the caller's tokens.
        exact, bounds, which: beta M and V of every instance in float64, the product of their spectral norms, and the
            instance of each trajectory.
        numbers, counts: see the names of their columns.
        f, vectors, squares, ints: working memory of merging.
    """
    d = tokens.shape[2]
    loaded = -1
    for b in range(first, last):
        if which[b] != loaded:
            loaded = which[b]
            _put_weights(w, at, d, exact, loaded, 1.4426950408889634)
        n = counts[b, ROWS]
        ld = _put_rows(w, at, d, n, tokens, sizes, b)
        if counts[b, ANCHORED] == 1:
            for i in range(d * ld):
                w[at.anchor + i] = 0
                w[at.heading + i] = 0
            _exchange(w, at.anchor, d, n, ld, anchors, b, False)
            _exchange(w, at.heading, d, n, ld, headings, b, False)
        _begin(w, at, rules, d, n, ld, numbers, counts, b)
        ld = _follow(
            w, at, rules, table, d, tokens, sizes, labels, exact, bounds, loaded, numbers, counts, b, f, vectors,
            squares, ints,
        )  # fmt: skip
        n = counts[b, ROWS]
        _exchange(w, at.x, d, n, ld, tokens, b, True)
        _exchange(w, at.slopes, d, n, ld, velocities, b, True)
        if counts[b, ANCHORED] == 1:
            _exchange(w, at.anchor, d, n, ld, anchors, b, True)
            _exchange(w, at.heading, d, n, ld, headings, b, True)


@functools.lru_cache(maxsize=64)
def places(n: int, d: int, n_stages: int, itemsize: int) -> tuple[Any, int]:
    """Where the arrays of a trajectory of n tokens lie, and how long the working memory is."""
    lanes = VECTOR_BYTES // itemsize
    depth = -(-d // TILE_ROWS) * TILE_ROWS
    longest = -(-n // max(lanes, TILE_ROWS)) * max(lanes, TILE_ROWS) + max(lanes, TILE_ROWS)
    block, wide = depth * longest, TILE_VECTORS * lanes
    sizes = {
        "x": block, "next": block, "slopes": n_stages * block, "keys": block,
        "logits": (n + TILE_ROWS) * wide + longest, "mean": depth * wide, "pull": depth * wide, "scale": wide,
        "logs": longest, "live": longest, "filled": longest, "scaled": max(lanes, n_stages + 1), "zeros": lanes,
        "coupling": depth * depth, "value": depth * depth, "anchor": block, "heading": block,
    }  # fmt: skip
    starts, here = {}, 0
    for name, size in sizes.items():
        starts[name] = here
        here += -(-size // lanes) * lanes
    return Places(block=block, depth=depth, length=here, **starts), here + lanes


@no_type_check
def has_code(function, arguments):
    """Whether the function is compiled for such arguments, here or in the cache on disk."""
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    if kinds in function.overloads:
        return True
    return function._cache.load_overload(kinds, function.targetctx) is not None
