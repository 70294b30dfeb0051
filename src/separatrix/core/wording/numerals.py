"""A number as people write it: as many digits as its uncertainty bears, and a few where none is known.

Rounding of uncertainties follows the Particle Data Group (Review of Particle Physics, section 5.3): of the three
leading digits of the error, 100 to 354 keeps two, 355 to 949 keeps one, 950 to 999 is rounded up to 1000 and keeps two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

_FIXED = (1e-4, 1e6)
"""Between these a number is written without a power of ten."""


def number(value: float | complex, digits: int = 3) -> str:
    """A number whose uncertainty is not known: ``digits`` of it; tiny and huge ones as a power of ten with two digits.

    Example:
        >>> number(0.604167), number(2.98e-13), number(150.4), number(0.0), number(101e6), number(18436.68)
        ('0.604', '3e-13', '150', '0', '1e8', '18437')
    """
    if isinstance(value, complex):
        sign = "-" if value.imag < 0 else "+"
        return f"{number(value.real, digits)} {sign} {number(abs(value.imag), digits)}i"
    value = float(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    if not _FIXED[0] <= abs(value) < _FIXED[1]:
        return small(value)
    return unsigned_zero(f"{value:.{max(digits - 1 - _order(value), 0)}f}", strip=True)


def small(value: float) -> str:
    """An error near rounding, or any number whose size alone matters: two digits and a power of ten.

    Example:
        >>> small(1.554e-15), small(0.0), small(0.0312), small(5e6), small(12.0)
        ('1.6e-15', '0', '0.031', '5e6', '12')
    """
    value = float(value)
    if value == 0 or not math.isfinite(value):
        return number(value)
    if 1e-3 <= abs(value) < 1e4:
        return number(value, 2)
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def measured(value: float, error: float | None, *, signed: bool = False, digits: int = 3) -> str:
    """A value with its uncertainty, rounded to the digits that the uncertainty bears.

    Args:
        value: what was measured.
        error: its standard error, deviation or half-width; without one the value has ``digits``.
        signed: with a plus in front of what is not negative, for differences.
        digits: of a value without uncertainty.

    Example:
        >>> measured(0.604167, 0.116108), measured(1.2492, 0.0037), measured(3018.0, 836.1), measured(0.5, 0.0)
        ('0.60 ± 0.12', '1.249 ± 0.004', '3000 ± 800', '0.5')
    """
    plus = "+" if signed and value > 0 else ""  # a value that is rounded to zero beside its error keeps its side
    if error is None or not math.isfinite(error) or error == 0 or not math.isfinite(value):
        return plus + number(value, digits)
    if abs(error) < 1e-12 * abs(value):  # of rounding alone
        return plus + number(value, 6)
    if abs(error) < 1e-7 * abs(value):
        return f"{plus}{number(value, 6)} ± {small(abs(error))}"
    if abs(error) < _FIXED[0] * 1e-2 or max(abs(value), abs(error)) >= _FIXED[1]:
        return _with_power(value, abs(error), plus)
    places, rounded = _places(abs(error))
    return f"{plus}{at_place(value, places)} ± {at_place(rounded, places)}"


def uncertainty(error: float) -> str:
    """An uncertainty that stands alone, with the digits it would have beside its value.

    Example:
        >>> uncertainty(0.116108), uncertainty(0.0), uncertainty(0.0079), uncertainty(8e-15)
        ('0.12', '0', '0.008', '8e-15')
    """
    error = float(error)
    if error == 0 or not _FIXED[0] * 1e-2 <= abs(error) < _FIXED[1]:
        return small(error)
    places, rounded = _places(abs(error))
    return at_place(math.copysign(rounded, error), places)


def _with_power(value: float, error: float, plus: str) -> str:
    """``(2.50 ± 0.02)e-3``: one power of ten for both."""
    order = _order(max(abs(value), error))
    places, rounded = _places(error / 10.0**order)
    inside = f"{at_place(value / 10.0**order, places)} ± {at_place(rounded, places)}"
    return f"{plus}({inside})e{order}"


def within_interval(
    value: float,
    low: float,
    high: float,
    *,
    signed: bool = False,
    bounds: tuple[float, float] | None = None,
) -> str:
    """A value with its interval; digits by half its width. ``bounds`` cut the interval of a share at 0 and 1.

    Example:
        >>> within_interval(0.99975, 0.99913, 1.00037, bounds=(0.0, 1.0)), within_interval(-0.045, -0.2841, 0.1933)
        ('0.9998 [0.9991, 1]', '-0.04 [-0.28, 0.19]')
    """
    sides = (value, low, high)
    if not all(map(math.isfinite, sides)) or high <= low:
        return _signed(number(value), signed)
    ends = (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))
    told = [_signed(text, signed) for text in alike(value, *ends, error=(high - low) / 2)]
    cut = [
        number(end) if bounds is not None and end in bounds and end != raw else words
        for end, raw, words in zip(ends, (low, high), told[1:], strict=True)
    ]
    return f"{told[0]} [{cut[0]}, {cut[1]}]"


def alike(*values: float, error: float) -> list[str]:
    """Several numbers with the digits that one uncertainty bears.

    Example:
        >>> alike(0.60417, 0.31, error=0.116108), alike(4.131e-06, 5.2e-6, error=1e-7)
        (['0.60', '0.31'], ['4.1e-6', '5.2e-6'])
    """
    if error <= 0 or error < _FIXED[0] * 1e-2 or max(map(abs, values)) >= _FIXED[1]:
        return [small(value) for value in values]
    places, _ = _places(error)
    return [at_place(value, places) for value in values]


def _signed(text: str, signed: bool) -> str:
    """With a plus, if wanted, unless the digits that are shown are zero."""
    return f"+{text}" if signed and not text.startswith("-") and text.strip("0.") else text


def interval_of(row: Mapping[str, Any], key: str = "mean", *, signed: bool = False, share: bool = False) -> str:
    """A number of a record with the interval that stands beside it, ``low`` and ``high`` or ``KEY_low`` and so on.

    Example:
        >>> interval_of({"gap": 0.0888, "low": 0.061, "high": 0.117}, "gap", signed=True)
        '+0.089 [+0.061, +0.117]'
    """
    front = f"{key}_" if f"{key}_low" in row else ""
    low, high = row.get(f"{front}low"), row.get(f"{front}high")
    if low is None or high is None:
        return _signed(number(row[key]), signed)
    return within_interval(row[key], low, high, signed=signed, bounds=(0.0, 1.0) if share else None)


def several(count: int, thing: str, things: str | None = None) -> str:
    """A count with the word in its number.

    Example:
        >>> several(1, "comparison"), several(3, "comparison"), several(0, "match", "matches")
        ('1 comparison', '3 comparisons', '0 matches')
    """
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def joined(words: Sequence[str]) -> str:
    """Names as a list in a sentence.

    Example:
        >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def _order(value: float) -> int:
    return math.floor(math.log10(abs(value)))


def _places(error: float) -> tuple[int, float]:
    """Decimal places that an error bears (negative before the point), and the error with 950 to 999 rounded up."""
    order = _order(error)
    leading = round(error / 10.0 ** (order - 2))
    if leading >= 950:
        return -order, 10.0 ** (order + 1)
    return (1 - order if leading < 355 else -order), error


def at_place(value: float, places: int) -> str:
    """A number rounded to a decimal place; negative places lie before the point."""
    rounded = round(value, places)
    return unsigned_zero(f"{rounded:.{max(places, 0)}f}")


def unsigned_zero(text: str, *, strip: bool = False) -> str:
    """No zero has a sign; with ``strip`` zeros at the end are dropped."""
    if strip and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.removeprefix("-") if not text.strip("-0.") else text
