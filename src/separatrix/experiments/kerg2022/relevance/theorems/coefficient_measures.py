"""Sums of appendix B.1.3 of kerg2022 by enumeration, in rational numbers: omega, theta, chi, psi and bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def omega(low: int, high: int, s: int, t: int) -> Fraction:
    """Sum of products of s different factors 1/(t + i), low <= i < high; Eq. (B.1.121), with 1 for s = 0."""
    polynomial = [Fraction(1)] + [Fraction(0)] * s
    for i in range(low, high):
        for degree in range(s, 0, -1):
            polynomial[degree] += polynomial[degree - 1] / (t + i)
    return polynomial[s]


def theta(k: int, s: int, t: int) -> Fraction:
    """Eq. (B.1.122) from 0 to k, chain by chain; 1 for s = 0."""
    total = Fraction(0)
    for chain in itertools.combinations(range(k), s):
        product = Fraction(1)
        for place, i in enumerate(chain):
            follows = i == 0 if place == 0 else i - chain[place - 1] == 1
            product *= Fraction(1, t + i) + int(follows)
        total += product
    return total


def chi(k: int, s: int, t: int) -> Fraction:
    """Eq. (B.1.117), chain by chain."""
    if s == 0:
        return Fraction(1, t + k) + int(k == 0)
    total = Fraction(0)
    for chain in itertools.combinations(range(k), s):
        product = Fraction(1, t + k) + int(k - chain[-1] == 1)
        for place in range(s - 1, 0, -1):
            product *= Fraction(1, t + chain[place]) + int(chain[place] - chain[place - 1] == 1)
        total += product * (Fraction(1, t + chain[0]) + int(chain[0] == 0))
    return total


def power_sum(power: int, k: int, t: int) -> Fraction:
    """S_l of Eq. (B.1.133)."""
    return sum((Fraction(1, (t + i) ** power) for i in range(k)), Fraction(0))


def omega_four(k: int, t: int) -> dict[str, Fraction]:
    """omega(4) by enumeration, by the two printed forms, and with the pairs of pairs counted once."""
    S = {power: power_sum(power, k, t) for power in range(1, 5)}
    w1, w2 = omega(0, k, 1, t), omega(0, k, 2, t)
    common = S[1] ** 4 - 12 * S[2] * w2 + 8 * S[3] * w1
    return {
        "truth": omega(0, k, 4, t),
        "first_print": (common - 3 * (S[4] + S[2] ** 2)) / 24,
        "second_print": S[1] ** 4 / 24 - S[2] * w2 / 2 + S[3] * w1 / 3 - (S[4] + 2 * S[2] ** 2) / 8,
        "correct": (common - 6 * S[4] - 3 * S[2] ** 2) / 24,
    }


def psi_tables(length: int, k: int, t: int) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """psi_l by their generating function, by ordered sums of delta, and by unordered ones as printed."""
    # exp(sum_{l >= 2} (-1)^{l-1} S_l z^l / l): l psi_l = sum_j j a_j psi_{l-j}
    a = [Fraction(0), Fraction(0)] + [
        Fraction((-1) ** (power - 1), power) * power_sum(power, k, t) for power in range(2, length + 1)
    ]
    psi = [Fraction(1)]
    for power in range(1, length + 1):
        psi.append(sum((j * a[j] * psi[power - j] for j in range(1, power + 1)), Fraction(0)) / power)
    delta = [Fraction(0)] * (length + 1)
    for power in range(1, length + 1):  # psi_l = sum_{j=1}^{l} delta_j psi_{l-j}
        delta[power] = psi[power] - sum((delta[j] * psi[power - j] for j in range(1, power)), Fraction(0))
    ordered = [_summed(delta, power, ordered=True) for power in range(length + 1)]
    unordered = [_summed(delta, power, ordered=False) for power in range(length + 1)]
    return psi, ordered, unordered


def _summed(delta: list[Fraction], total: int, *, ordered: bool, largest: int | None = None) -> Fraction:
    if total == 0:
        return Fraction(1)
    top = total if largest is None or ordered else min(total, largest)
    parts = (
        delta[first] * _summed(delta, total - first, ordered=ordered, largest=first) for first in range(2, top + 1)
    )
    return sum(parts, Fraction(0))


def bounds_hold(k: int, s: int, t: int) -> tuple[bool, bool]:
    """Whether the bounds of Lemmas B.1.28 (for theta) and B.1.31 (for chi) hold."""
    lower = sum(math.comb(s, r) * omega(s - r, k, r, t) for r in range(s + 1))
    upper = sum(math.comb(s, r) * omega(0, k - s + r, r, t) for r in range(s + 1))
    first = lower <= theta(k, s, t) <= upper
    below = sum(math.comb(s + 1, r + 1) * omega(s - r, k, r, t) for r in range(s + 1)) / (t + k)
    above = sum(math.comb(s + 1, r + 1) * omega(0, k - s + r, r, t) for r in range(s + 1)) / (t + k - s)
    at_end = int(k == s)
    return first, at_end + below <= chi(k, s, t) <= at_end + above


def chi_from_theta(k: int, s: int, t: int, *, with_convention: bool) -> Fraction:
    """Eq. (B.1.215); theta_{0:0}(0) = 1 is a convention that the document does not state."""
    total = Fraction(int(k == s))
    for i in range(s + 1):
        if k - i == 0 and s - i == 0:
            value = Fraction(int(with_convention))
        else:
            value = theta(k - i, s - i, t)
        total += value / (t + k - i)
    return total


def bound_gap(k: int, s: int, t: int) -> float:
    """Upper minus lower bound of Lemma B.1.28, in floating numbers for long sequences (Remark B.1.29)."""
    total = 0.0
    for r in range(s + 1):
        upper, lower = (_omega_float(low, high, r, t) for low, high in ((0, k - s + r), (s - r, k)))
        total += math.comb(s, r) * (upper - lower)
    return total


def _omega_float(low: int, high: int, s: int, t: int) -> float:
    polynomial = [1.0] + [0.0] * s
    for i in range(low, high):
        for degree in range(s, 0, -1):
            polynomial[degree] += polynomial[degree - 1] / (t + i)
    return polynomial[s]
