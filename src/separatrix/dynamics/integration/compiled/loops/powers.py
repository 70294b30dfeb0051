"""Powers of two of vectors, for numbers up to 127 (1023 in float64).

Adding 1.5 2^(mantissa bits) rounds to a whole number and leaves it in the lowest bits, from where it is shifted into
the exponent; a polynomial gives the rest. What is below the smallest normal number becomes that, and NaN stays NaN.
Several vectors go in step, because every operation waits for the one before. Where eight float64 numbers are a vector,
its lanes can be taken by index, so that eighths come from a table and the polynomial is shorter: a quarter less time.
"""

from __future__ import annotations

from typing import Any, no_type_check

from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

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

REST_OF_EIGHTHS = (
    0.6931471805599453,
    0.24022650695910933,
    0.05550410866482224,
    0.009618129089983302,
    0.0013333558132838856,
    0.00015404433819347582,
    1.525342958649691e-05,
)
"""Polynomial q with 2^r = 1 + r q(r) for |r| <= 1/16, by interpolation at Chebyshev points: 6e-18."""

EIGHTHS = tuple(2.0 ** (number / 8) for number in range(8))


@no_type_check
def powers_of(builder: Any, xs: list[Any]) -> list[Any]:
    """2^x of every vector of a list, all of one kind, as instructions of LLVM."""
    vector, by_table = xs[0].type, _has_table(xs[0].type)
    bits, mantissa, lowest = (32, 23, -126.0) if isinstance(vector.element, ir.FloatType) else (64, 52, -1022.0)
    whole = ir.VectorType(ir.IntType(bits), vector.count)
    low, shift = all_of(vector, lowest), mantissa - 3 if by_table else mantissa
    xs = [builder.select(builder.fcmp_ordered("<", x, low), low, x) for x in xs]
    rounding = all_of(vector, 1.5 * 2.0**shift)
    shifted = [builder.fadd(x, rounding) for x in xs]
    rests = [builder.fsub(x, builder.fsub(y, rounding)) for x, y in zip(xs, shifted, strict=True)]
    numbers = [builder.bitcast(y, whole) for y in shifted]
    if by_table:
        values = _by_table(builder, rests, numbers)
        numbers = [builder.and_(number, all_of(whole, -8)) for number in numbers]
    else:
        values = _horner(builder, EXPONENTIAL[bits], rests)
    exponents = [builder.shl(number, all_of(whole, shift)) for number in numbers]
    pairs = zip(values, exponents, strict=True)
    return [builder.bitcast(builder.add(builder.bitcast(v, whole), e), vector) for v, e in pairs]


@no_type_check
def _has_table(vector: Any) -> bool:
    """Whether the lanes of such a vector can be taken by index: eight float64 numbers are a vector of AVX-512 only."""
    return isinstance(vector.element, ir.DoubleType) and vector.count == 8


@no_type_check
def _by_table(builder: Any, rests: list[Any], numbers: list[Any]) -> list[Any]:
    """2^(eighths + rest), the eighths being the lowest three bits of the numbers."""
    vector, whole = rests[0].type, numbers[0].type
    kind, name = ir.FunctionType(vector, [vector, whole]), "llvm.x86.avx512.permvar.df.512"
    taken = cgutils.get_or_insert_function(builder.module, kind, name)
    table = ir.Constant(vector, [ir.Constant(vector.element, number) for number in EIGHTHS])
    factors = [builder.call(taken, [table, number]) for number in numbers]
    slopes = _horner(builder, REST_OF_EIGHTHS, rests)
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
