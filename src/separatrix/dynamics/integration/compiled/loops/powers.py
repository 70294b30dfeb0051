"""Powers of two of vectors, for numbers up to 127 (1023 in float64).

Adding 1.5 2^(mantissa bits) rounds to a whole number and leaves it in the lowest bits, from where it is shifted into
the exponent; a polynomial gives the rest. What is below the smallest normal number becomes that, and NaN stays NaN.
Several vectors go in step, because every operation waits for the one before. Where vectors have 512 bits, their lanes
can be taken by index, two vectors at a time, so that parts of one (sixteenths in float64, 32nds in float32) come from a
table and the polynomial is shorter.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

TABLE_BITS = 512
"""Of a vector whose lanes can be taken by index: that of AVX-512."""

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

REST_OF_PART = {
    32: (0.6931573991246511, 0.24023181910902874),
    64: (
        0.6931471805599457,
        0.24022650695910075,
        0.0555041086566393,
        0.009618129106919537,
        0.0013333781576784268,
        0.00015403723980749256,
    ),
}
"""Polynomials q with 2^r = 1 + r q(r) for |r| <= 1/64, by Remez exchange: 5.4e-8; and for |r| <= 1/32, by interpolation
at Chebyshev points: 1.5e-17."""


@no_type_check
def powers_of(builder: Any, xs: list[Any]) -> list[Any]:
    """2^x of every vector of a list, all of one kind, as instructions of LLVM."""
    vector = xs[0].type
    bits, mantissa, lowest = (32, 23, -126.0) if isinstance(vector.element, ir.FloatType) else (64, 52, -1022.0)
    by_table = vector.count * bits == TABLE_BITS
    whole = ir.VectorType(ir.IntType(bits), vector.count)
    low, shift = all_of(vector, lowest), mantissa - (2 * vector.count).bit_length() + 1 if by_table else mantissa
    xs = [builder.select(builder.fcmp_ordered("<", x, low), low, x) for x in xs]
    rounding = all_of(vector, 1.5 * 2.0**shift)
    shifted = [builder.fadd(x, rounding) for x in xs]
    rests = [builder.fsub(x, builder.fsub(y, rounding)) for x, y in zip(xs, shifted, strict=True)]
    numbers = [builder.bitcast(y, whole) for y in shifted]
    exponents = [builder.shl(number, all_of(whole, shift)) for number in numbers]
    if by_table:
        factors = [builder.add(part, e) for part, e in zip(_parts(builder, numbers, shift), exponents, strict=True)]
        return _raised(builder, [builder.bitcast(factor, vector) for factor in factors], rests, REST_OF_PART[bits])
    pairs = zip(_horner(builder, EXPONENTIAL[bits], rests), exponents, strict=True)
    return [builder.bitcast(builder.add(builder.bitcast(v, whole), e), vector) for v, e in pairs]


@no_type_check
def _parts(builder: Any, numbers: list[Any], shift: int) -> list[Any]:
    """From a table of two vectors, by the lowest bits of the numbers: powers of two for every part of one.

    They are given as bits from which those of the index are taken away: adding the number, shifted into the exponent,
    puts them back.
    """
    whole = numbers[0].type
    letter, kind, size = ("d", numpy.float32, numpy.int32) if whole.element.width == 32 else ("q", float, numpy.int64)
    count = 2 * whole.count
    bits = numpy.array([2.0 ** (number / count) for number in range(count)], kind).view(size)
    entries = [ir.Constant(whole.element, int(entry) - (number << shift)) for number, entry in enumerate(bits)]
    halves = [ir.Constant(whole, entries[: whole.count]), ir.Constant(whole, entries[whole.count :])]
    taken = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(whole, [whole] * 3), f"llvm.x86.avx512.vpermi2var.{letter}.512"
    )
    return [builder.call(taken, [halves[0], number, halves[1]]) for number in numbers]


@no_type_check
def _raised(builder: Any, factors: list[Any], rests: list[Any], coefficients: tuple[float, ...]) -> list[Any]:
    """Factors times 2^rest."""
    slopes = _horner(builder, coefficients, rests)
    rises = [builder.fmul(slope, rest) for slope, rest in zip(slopes, rests, strict=True)]
    return [_multiply_add(builder, factor, rise, factor) for factor, rise in zip(factors, rises, strict=True)]


@no_type_check
def _horner(builder: Any, coefficients: tuple[float, ...], xs: list[Any]) -> list[Any]:
    """The polynomial, lowest coefficient first, at every vector."""
    values = [all_of(xs[0].type, coefficients[-1])] * len(xs)
    for coefficient in coefficients[-2::-1]:
        term = all_of(xs[0].type, coefficient)
        values = [_multiply_add(builder, value, x, term) for value, x in zip(values, xs, strict=True)]
    return values


@no_type_check
def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    return builder.fadd(builder.fmul(a, b, flags=["contract"]), c, flags=["contract"])


@no_type_check
def all_of(kind: Any, number: float) -> Any:
    """A vector constant of one number."""
    return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)


@intrinsic
@no_type_check
def exp2(_, a):
    """Powers of two (``powers_of``)."""

    def code(context, builder, sig, args):
        return powers_of(builder, [args[0]])[0]

    return a(a), code
