"""Dense output of the exact solution: Chebyshev interpolation on panels that double in length, halved where needed.

A training moves fast at first and ever more slowly, so panels of equal length would waste nodes at its end; and a
single long panel may miss a transient between two of its nodes. The first panel is as long as the fastest mode allows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from separatrix.core import NotConverged

DEGREE = 16
_LEAST_DEGREE = 6
_RESERVE = 1e3
"""Factor of the coefficients' bound that is not in its exponent; a panel that just fails costs three times as much."""
_MOST_HALVINGS = 40
_LEAST_TOL = 1e-14
"""Rounding of the exact values; asking for less would halve for ever."""
_CHUNK_NUMBERS = 2**15

Evaluate = Callable[[NDArray[numpy.float64]], NDArray[numpy.float64]]
"""From times (n,) to values (n, ...)."""


def doubling_panels(start: float, end: float, first: float) -> NDArray[numpy.float64]:
    """Ends (panels, 2) of panels from the start to the end, each twice as long as the one before.

    They are counted from time zero, where a training begins, whatever the start.
    """
    if not end > start:
        return numpy.array([[start, start + max(abs(start), 1.0) * 1e-3]])
    first = min(first, end)
    edges = first * (numpy.exp2(numpy.arange(math.ceil(math.log2(1 + end / first)) + 1)) - 1)
    inside = edges[(edges > start) & (edges < end)]
    edges = numpy.concatenate([[start], inside, [end]])
    return numpy.stack([edges[:-1], edges[1:]], 1)


def first_panel(fastest: float, tol: float) -> float:
    """Length of panel on which the sigmoid of the fastest mode has a Chebyshev series of full degree to ``tol``.

    The sigmoid of rate ``2 mu`` has poles ``pi / (2 mu)`` beside the real axis. On a panel of length L they lie on the
    Bernstein ellipse of radius ``rho = y + sqrt(1 + y^2)``, ``y = pi / (mu L)``, and coefficients fall like ``rho^-k``
    (Trefethen, Approximation Theory and Approximation Practice, Theorem 8.1).
    """
    radius = (max(tol, _LEAST_TOL) / _RESERVE) ** (-1 / (DEGREE - 2))
    return math.pi / max(fastest * (radius - 1 / radius) / 2, 1e-300)


def fitting_degree(fastest: float, length: float, tol: float) -> int:
    """The degree that such a panel needs, by the same rule; the full one for long panels."""
    y = math.pi / max(fastest * length, 1e-6)
    needed = 2 - math.log(max(tol, _LEAST_TOL) / _RESERVE) / math.log(y + math.hypot(1, y))
    return max(_LEAST_DEGREE, min(DEGREE, math.ceil(needed)))


@functools.lru_cache(maxsize=DEGREE)
def _nodes(degree: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Chebyshev points of the first kind, and the matrix from values there to coefficients."""
    points = chebyshev.chebpts1(degree + 1)
    inverse: NDArray[numpy.float64] = numpy.linalg.inv(chebyshev.chebvander(points, degree)).astype(numpy.float64)
    return points, inverse


def chebyshev_path(
    evaluate: Evaluate,
    times: NDArray[numpy.float64],
    panels: NDArray[numpy.float64],
    tol: float,
    degree: int = DEGREE,
) -> tuple[NDArray[numpy.float64], int]:
    """Values at many times by interpolation between exact ones, and how many of those were computed.

    A panel is accepted when its last three Chebyshev coefficients are below ``tol`` times the largest value, and
    halved otherwise; all panels of one generation are evaluated together.

    Raises:
        NotConverged: 40 halvings did not suffice.
    """
    order = None if bool((times[1:] >= times[:-1]).all()) else numpy.argsort(times, kind="stable")
    sorted_times = times if order is None else times[order]
    points, to_series = _nodes(degree)
    evaluations, largest = 0, 1e-300
    result: NDArray[numpy.float64] | None = None
    for _ in range(_MOST_HALVINGS):
        low, high = panels.T
        middle, half = (low + high) / 2, (high - low) / 2
        nodes = middle[:, None] + half[:, None] * points
        values = evaluate(nodes.ravel())
        evaluations += nodes.size
        if result is None:
            result = numpy.empty((len(times), *values.shape[1:]))
        series = to_series @ values.reshape(len(panels), degree + 1, -1)
        largest = max(largest, float(numpy.abs(values).max(initial=0.0)))
        accepted = numpy.abs(series[:, -3:]).max((1, 2), initial=0.0) <= max(tol, _LEAST_TOL) * largest
        begin = numpy.searchsorted(sorted_times, low[accepted], side="left")
        end = numpy.searchsorted(sorted_times, high[accepted], side="right")
        centres, halves = (numpy.repeat(part[accepted], end - begin) for part in (middle, half))
        inside = numpy.concatenate([sorted_times[a:b] for a, b in zip(begin, end, strict=True)] or [times[:0]])
        basis = chebyshev.chebvander((inside - centres) / halves, degree)  # of all panels: many short calls cost more
        flat, first = result.reshape(len(times), -1), 0
        for a, b, own in zip(begin, end, series[accepted], strict=True):
            numpy.matmul(basis[first : first + b - a], own, out=flat[a:b])
            first += b - a
        if accepted.all():
            return (result if order is None else result[numpy.argsort(order)]), evaluations
        low, centre, high = (ends[~accepted] for ends in (low, middle, high))
        panels = numpy.concatenate([numpy.stack([low, centre], 1), numpy.stack([centre, high], 1)])
    raise NotConverged(f"Chebyshev panels did not converge to {tol:g}; use method='exact'.")


def squared_distance(values: NDArray[numpy.float64], target: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """``|values - target|^2`` along the first axis, in pieces that stay in the cache."""
    goal = target.ravel()
    flat = values.reshape(len(values), goal.size)
    size = max(1, _CHUNK_NUMBERS // max(1, goal.size))
    found = numpy.empty(len(flat))
    for begin in range(0, len(flat), size):
        apart = flat[begin : begin + size] - goal
        numpy.einsum("ij,ij->i", apart, apart, out=found[begin : begin + size])
    return found
