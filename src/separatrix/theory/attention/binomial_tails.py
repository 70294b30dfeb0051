"""Binomial coefficients and their sums: exact integers for thousands of coins, logarithms for billions."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

_SHORT = 1 << 12
_STIRLING_FROM = 1000


def binomial_sum(n: int, lowest: int, highest: int) -> int:
    """Sum of C(n, i) for i from lowest to highest, exactly, by recurrence over the shorter of it and its complement."""
    if lowest > highest:
        return 0
    if highest - lowest + 1 > (n + 1) // 2:
        return 2**n - binomial_sum(n, 0, lowest - 1) - binomial_sum(n, highest + 1, n)
    term = math.comb(n, lowest)
    total = term
    for i in range(lowest, highest):
        term = term * (n - i) // (i + 1)
        total += term
    return total


def log_binomial_fraction(n: int, i: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """ln(C(n, i) / 2^n) with relative accuracy, also for n of 10^9 where log-gamma alone loses the small digits."""
    low = torch.minimum(i, n - i)
    inner = low.clamp_min(1)
    tilt = (n - 2 * inner) / n
    divergence = ((1 + tilt) * torch.log1p(tilt) + (1 - tilt) * torch.log1p(-tilt)) / 2
    spread = torch.log(2 * math.pi * inner * ((n - inner) / n)) / 2
    bend = _stirling_error(torch.tensor(float(n), dtype=torch.float64)) - _stirling_error(inner)
    value = -n * divergence - spread + bend - _stirling_error(n - inner)
    return torch.where(low == 0, torch.full_like(value, -n * math.log(2)), value)


def log_tail_fraction(n: int, last: int) -> float:
    """ln of the sum of C(n, i) / 2^n for i from 0 to last (at most n/2), summed from the edge until terms vanish."""
    if last < 0:
        return -math.inf
    edge = float(log_binomial_fraction(n, torch.tensor(float(last), dtype=torch.float64)))
    total, log_term, start, chunk = 1.0, 0.0, 0, 256
    while start < last:
        steps = torch.arange(start, min(start + chunk, last), dtype=torch.float64)
        logs = log_term + torch.log((last - steps) / (n - last + 1 + steps)).cumsum(0)
        total += float(torch.exp(logs).sum())
        log_term, start, chunk = float(logs[-1]), start + chunk, min(2 * chunk, 1 << 20)
        if math.exp(log_term) < 1e-17 * total:
            break
    return edge + math.log(total)


def log_interval_fraction(n: int, low: int, high: int) -> float:
    """ln of the sum of C(n, i) / 2^n over an interval; long ones by their tails, so that small sums keep digits."""
    if high - low < _SHORT:
        inside = torch.arange(low, high + 1, dtype=torch.float64)
        return float(torch.logsumexp(log_binomial_fraction(n, inside), 0))
    if 2 * low > n:
        low, high = n - high, n - low
    if 2 * high <= n:
        upper, lower = log_tail_fraction(n, high), log_tail_fraction(n, low - 1)
        return upper + (math.log1p(-math.exp(lower - upper)) if low > 0 else 0.0)
    outside = math.exp(log_tail_fraction(n, low - 1)) + math.exp(log_tail_fraction(n, n - high - 1))
    return math.log1p(-outside)


Intervals: TypeAlias = list[tuple[int, int]]


def joined(parts: Intervals) -> Intervals:
    """Disjoint intervals of integers in order, neighbours merged."""
    merged: Intervals = []
    for low, high in sorted(parts):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def log_inside(n: int, parts: Intervals) -> float:
    """ln of the fraction of 2^n sign patterns whose number of plus signs lies in one of the intervals."""
    return logsumexp([log_interval_fraction(n, low, high) for low, high in joined(parts)])


def log_outside(n: int, parts: Intervals) -> float:
    """ln of the fraction of 2^n sign patterns whose number of plus signs lies in none of the intervals."""
    gaps, start = [], 0
    for low, high in [*joined(parts), (n + 1, n + 1)]:
        if start < low:
            gaps.append((start, low - 1))
        start = high + 1
    return logsumexp([log_interval_fraction(n, low, high) for low, high in gaps])


def logsumexp(logs: list[float]) -> float:
    """ln of a sum of exponentials; minus infinity for an empty sum."""
    top = max(logs, default=-math.inf)
    return top if top == -math.inf else top + math.log(sum(math.exp(log - top) for log in logs))


def _stirling_error(n: Tensor) -> Tensor:
    """ln n! minus Stirling's formula: the series for large n, log-gamma itself for small."""
    large = n.clamp_min(_STIRLING_FROM)
    series = (1 / 12 - (1 / 360 - 1 / (1260 * large**2)) / large**2) / large
    small = n.clamp(1, _STIRLING_FROM)
    direct = torch.lgamma(small + 1) - (small + 0.5) * torch.log(small) + small - math.log(2 * math.pi) / 2
    return torch.where(n >= _STIRLING_FROM, series, direct)
