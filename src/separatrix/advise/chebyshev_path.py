"""Dense output of the exact solution: Chebyshev interpolation on panels that double in length, halved where needed.

A training moves fast at first and ever more slowly, so panels of equal length would waste nodes at its end; and a
single long panel may miss a transient between two of its nodes. The first panel is as long as the fastest mode allows.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, final

import numpy
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from separatrix.core import NotConverged
from separatrix.theory.learning.one_network.few_threads import matrix_product, write_product

DEGREE = 16
_LEAST_DEGREE = 6
_RESERVE = 1e3
"""Factor of the coefficients' bound that is not in its exponent; a panel that just fails costs three times as much."""
_MOST_HALVINGS = 40
_LEAST_TOL = 1e-14
"""Rounding of the exact values; asking for less would halve for ever."""
_CHUNK_NUMBERS = 2**15

_VISIBLE = 1e-3
"""A sum of terms that is less than this part of their sizes shows their rounding after twelve digits."""

Array: TypeAlias = NDArray[numpy.float64]
Evaluate: TypeAlias = Callable[[Array], Array]
"""From times (n,) to values (n, ...)."""


def doubling_panels(start: float, end: float, first: float) -> Array:
    """Ends (panels, 2) of panels from the start to the end, each twice as long as the one before.

    They are counted from time zero, where a training begins, whatever the start.
    """
    if not end > start:
        return numpy.array([[start, start + max(abs(start), 1.0) * 1e-3]])
    if not first < end:
        return numpy.array([[start, end]])
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
def _nodes(degree: int) -> tuple[Array, Array]:
    """Chebyshev points of the first kind, and the matrix from values there to coefficients."""
    points = chebyshev.chebpts1(degree + 1)
    inverse: Array = numpy.linalg.inv(chebyshev.chebvander(points, degree)).astype(numpy.float64)
    return points, inverse


@final
@dataclasses.dataclass(frozen=True)
class Piece:
    """Values at times ``begin`` to ``end`` in rising order: ``basis @ series``, or the series alone."""

    begin: int
    end: int
    series: Array
    basis: Array | None = None

    def write(self, values: Array) -> None:
        """Fill in these rows of the values (times, numbers)."""
        rows = values[self.begin : self.end]
        if self.basis is None:
            rows[:] = self.series
        else:
            write_product(self.basis, self.series, rows)

    def write_distance(self, goal: Array, values: Array, distance: Array) -> None:
        """Fill in these ``|values - goal|^2``.

        They are a quadratic form of the basis, whose matrix is small. Where they are so much smaller than its terms
        that rounding would be seen, without a basis, and of few values, they are taken from the values.
        """
        unsure: Any = slice(None)
        rows, found = values[self.begin : self.end], distance[self.begin : self.end]
        if self.basis is not None and rows.size > _CHUNK_NUMBERS:
            apart = self.series.copy()
            apart[0] -= goal
            gram = matrix_product(apart, apart.T)
            numpy.einsum("ij,ij->i", matrix_product(self.basis, gram), self.basis, out=found)
            least = _VISIBLE * len(gram) * float(gram.trace())  # as much as all terms together, or more
            if float(found.min()) >= least:
                return
            unsure = found < least
        found[unsure] = _plain_distance(rows[unsure], goal)


@final
@dataclasses.dataclass(frozen=True)
class ChebyshevPath:
    """Values at many times as pieces."""

    pieces: tuple[Piece, ...]
    order: NDArray[numpy.intp] | None
    """Which of the times asked for come first, second, ... in rising order; None if they rise already."""
    n_times: int
    shape: tuple[int, ...]
    evaluations: int
    """How many values were computed exactly."""

    def values(self) -> Array:
        """Values (times, ...)."""
        return self._in_order(self._rising()).reshape(self.n_times, *self.shape)

    def values_and_distance(self, target: Array) -> tuple[Array, Array]:
        """Values (times, ...), and ``|values - target|^2`` at each time."""
        goal, values, distance = target.ravel(), self._rising(), numpy.empty(self.n_times)
        for piece in self.pieces:
            piece.write_distance(goal, values, distance)
        return self._in_order(values).reshape(self.n_times, *self.shape), self._in_order(distance)

    def _rising(self) -> Array:
        values = numpy.empty((self.n_times, math.prod(self.shape)))
        for piece in self.pieces:
            piece.write(values)
        return values

    def _in_order(self, rising: Array) -> Array:
        if self.order is None:
            return rising
        found = numpy.empty_like(rising)
        found[self.order] = rising
        return found


def chebyshev_path(
    evaluate: Evaluate,
    times: Array,
    panels: Array,
    tol: float,
    degree: int = DEGREE,
) -> ChebyshevPath:
    """Values at many times by interpolation between exact ones.

    A panel is accepted when its last three Chebyshev coefficients are below ``tol`` times the largest value, and
    halved otherwise; all panels of one generation are evaluated together. Panels with no more times than nodes are
    evaluated at the times.

    Raises:
        NotConverged: 40 halvings did not suffice.
    """
    order = None if bool((times[1:] >= times[:-1]).all()) else numpy.argsort(times, kind="stable")
    rising = times if order is None else times[order]
    points, to_series = _nodes(degree)
    tol = max(tol, _LEAST_TOL)
    evaluations, largest = 0, 1e-300
    pieces: list[Piece] = []
    if len(panels) == 1 and len(rising) > degree + 1 and panels[0, 0] <= rising[0] and rising[-1] <= panels[0, 1]:
        piece, shape, largest = _one_piece(evaluate, rising, panels[0], tol, degree)
        evaluations = degree + 1
        if piece is not None:
            return ChebyshevPath((piece,), order, len(times), shape, evaluations)
        panels = numpy.linspace(panels[0, 0], panels[0, 1], 3)[[[0, 1], [1, 2]]]
    for _ in range(_MOST_HALVINGS):
        begins, ends = inside(rising, panels)
        sparse = ends - begins <= degree + 1
        dense = panels[~sparse]
        middle, half = (dense[:, 1] + dense[:, 0]) / 2, (dense[:, 1] - dense[:, 0]) / 2
        exact = _joined(begins[sparse], ends[sparse])
        alone = numpy.concatenate([rising[:0], *(rising[a:b] for a, b in exact)])
        nodes = middle[:, None] + half[:, None] * points
        values = evaluate(numpy.concatenate([alone, nodes.ravel()]))
        shape, size = values.shape[1:], math.prod(values.shape[1:])
        flat = values.reshape(-1, size)
        evaluations += len(values)
        pieces += _exact_pieces(exact, flat)
        series = matrix_product(to_series, flat[len(alone) :].reshape(len(dense), degree + 1, size))
        largest = max(largest, float(numpy.abs(flat).max(initial=0.0)))
        accepted = numpy.abs(series[:, -3:]).max((1, 2), initial=0.0) <= tol * largest
        begins, ends = begins[~sparse][accepted], ends[~sparse][accepted]
        pieces += _series_pieces(rising, begins, ends, dense[accepted], series[accepted])
        if accepted.all():
            return ChebyshevPath(tuple(pieces), order, len(times), shape, evaluations)
        low, centre, high = dense[~accepted, 0], middle[~accepted], dense[~accepted, 1]
        panels = numpy.concatenate([numpy.stack([low, centre], 1), numpy.stack([centre, high], 1)])
    raise NotConverged(f"Chebyshev panels did not converge to {tol:g}; use method='exact'.")


def _one_piece(
    evaluate: Evaluate, rising: Array, panel: Array, tol: float, degree: int
) -> tuple[Piece | None, tuple[int, ...], float]:
    """The series of a panel that holds all times, None if it must be halved; shape and size of the values.

    That is all there is to a short training, a seventh of which went into looking after panels.
    """
    points, to_series = _nodes(degree)
    middle, half = float(panel[1] + panel[0]) / 2, float(panel[1] - panel[0]) / 2
    values = evaluate(middle + half * points)
    shape = values.shape[1:]
    flat = values.reshape(degree + 1, math.prod(shape))
    series, largest = matrix_product(to_series, flat), float(numpy.abs(flat).max(initial=1e-300))
    if not float(numpy.abs(series[-3:]).max(initial=0.0)) <= tol * largest:
        return None, shape, largest
    basis = _polynomials((rising - middle) / half, degree)
    return Piece(0, len(rising), series, basis), shape, largest


def inside(rising: Array, panels: Array) -> tuple[Any, Any]:
    """The first of the times within each panel, and the first beyond it."""
    return numpy.searchsorted(rising, panels[:, 0], side="left"), numpy.searchsorted(rising, panels[:, 1], side="right")


def _joined(begins: Any, ends: Any) -> list[tuple[int, int]]:
    """Ranges that are not empty, in rising order, those in one where one ends at or beyond the next one's begin."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif begin < end:
            joined.append((begin, end))
    return joined


def _exact_pieces(ranges: list[tuple[int, int]], values: Array) -> Iterator[Piece]:
    """Values at times evaluated themselves, range after range."""
    first = 0
    for begin, end in ranges:
        yield Piece(begin, end, values[first : first + end - begin])
        first += end - begin


def _series_pieces(rising: Array, begins: Any, ends: Any, panels: Array, series: Array) -> Iterator[Piece]:
    """Series on the panels; their polynomials in one call, as many short ones cost more."""
    if not len(panels):
        return
    counts = ends - begins
    middle, half = ((panels[:, 1] + sign * panels[:, 0]) / 2 for sign in (1, -1))
    times = numpy.concatenate([rising[a:b] for a, b in zip(begins, ends, strict=True)])
    within = (times - numpy.repeat(middle, counts)) / numpy.repeat(half, counts)
    basis = _polynomials(within, series.shape[1] - 1)
    first = 0
    for i, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        yield Piece(begin, end, series[i], basis[first : first + end - begin])
        first += end - begin


def _polynomials(within: Array, degree: int) -> Array:
    """Chebyshev polynomials at numbers between -1 and 1 (give or take rounding), (numbers, degree + 1)."""
    found = numpy.empty((degree + 1, len(within)))
    found[0], found[1] = 1.0, within
    twice = 2 * within
    for k in range(2, degree + 1):
        numpy.multiply(twice, found[k - 1], out=found[k])
        found[k] -= found[k - 2]
    return found.T


def squared_distance(values: Array, target: Array) -> Array:
    """``|values - target|^2`` along the first axis."""
    return _plain_distance(values.reshape(len(values), target.size), target.ravel())


def _plain_distance(rows: Array, goal: Array) -> Array:
    """The same of rows and a row, in pieces that stay in the cache."""
    size = max(1, _CHUNK_NUMBERS // max(1, goal.size))
    found = numpy.empty(len(rows))
    for begin in range(0, len(rows), size):
        apart = rows[begin : begin + size] - goal
        numpy.einsum("ij,ij->i", apart, apart, out=found[begin : begin + size])
    return found
