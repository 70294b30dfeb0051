"""Three bases of the hidden space in which the exact solution is one positive-definite system per time.

In a basis R the rows of the modes are ``C R``, and each column is divided by the growth ``exp(p t)`` of the mode it
ends in, its pivot. Then nothing overflows, and the matrix to be inverted,

    K^-1 = e (R'R) e + sum over modes of int exp(2 rate s) ds (C R e)' (C R e),   e = exp(-p t),

is a sum of positive parts. Which basis is best depends on how far the training goes and on the start:

- ``given``: R = 1, no division. For short trainings, while growth is no danger.
- ``pivoted``: R = C+^-1, the fastest modes each with a column of its own, so that their part is diagonal. Wherever at
  least as many modes grow as there are hidden units, if C+ is well conditioned.
- ``echelon``: R a rotation, C lower triangular, whatever the sizes and ranks.
"""

from __future__ import annotations

import dataclasses
from typing import final

import numpy

from .few_threads import inner, inverse, matrix_product, upper_factor
from .network_modes import NetworkModes
from .plain_arrays import Array

EPS = float(numpy.finfo(float).eps)
_LARGEST_GROWTH = 1e3
_LARGEST_CONDITION = 1e3
_ROUNDING = 16
"""What is left of a row after those before it is zero if it is below so many units of rounding."""


@final
@dataclasses.dataclass(frozen=True)
class HiddenBasis:
    """Rows in the basis without those of the pivots that are unit rows (the first ``n_unit``)."""

    name: str
    rows: Array
    gaps: Array
    """Rate of a growing row minus that of the column's pivot, never positive; one column where no pivot grows."""
    pivots: Array
    gram: Array
    """``R'R``; the identity where there are no unit rows."""
    excess: Array
    """Rate of every row, unit rows first, minus that of the slowest pivot; ``slowest``."""
    slowest: float
    n_unit: int = 0


def given(modes: NetworkModes, horizon: float) -> HiddenBasis | None:
    """The hidden units themselves, if nothing grows by much until the horizon."""
    fastest = 2 * float(modes.rates[0]) * horizon
    size = inner(modes.rows, modes.rows)
    if fastest > 50 or (1 + size * horizon) * float(numpy.exp(fastest)) > _LARGEST_GROWTH:
        return None
    n_hidden = modes.rows.shape[1]
    return HiddenBasis(
        "given",
        modes.rows,
        modes.rates[: modes.n_growing, None],
        numpy.zeros(n_hidden),
        numpy.eye(n_hidden),
        modes.rates,
        0.0,
    )


def pivoted(modes: NetworkModes) -> HiddenBasis | None:
    """Columns of the fastest modes, if there are enough of them and their rows are independent enough."""
    h = modes.rows.shape[1]
    if h > modes.n_growing:
        return None
    fastest = modes.rows[:h]
    basis = inverse(fastest)
    if basis is None:
        return None
    if not inner(fastest, fastest) * inner(basis, basis) <= _LARGEST_CONDITION**2:
        return None
    kept = slice(h, modes.n_growing)
    gaps = _gaps(modes.rates[kept], modes.strengths[kept], modes.rates[:h], modes.strengths[:h])
    slowest = float(modes.rates[h - 1])
    rows, excess = matrix_product(modes.rows[h:], basis), _excess(modes, slowest, float(modes.strengths[h - 1]))
    return HiddenBasis("pivoted", rows, gaps, modes.rates[:h], matrix_product(basis.T, basis), excess, slowest, h)


def echelon(modes: NetworkModes) -> HiddenBasis:
    """Lower echelon form: a row that depends on those before it opens no column.

    The plain twin is ``row_echelon``. Columns that no row opens are without weight and left out.
    """
    rows, opened = _opened(modes.rows)
    pivots = numpy.maximum(modes.rates[opened], 0.0)
    strengths = numpy.where(pivots > 0, modes.strengths[opened], 0.0)
    growing = slice(0, modes.n_growing)
    gaps = _gaps(modes.rates[growing], modes.strengths[growing], pivots, strengths)
    slowest, strength = (float(pivots[-1]), float(strengths[-1])) if opened else (0.0, 0.0)
    excess = _excess(modes, slowest, strength)
    return HiddenBasis("echelon", rows[:, : len(opened)], gaps, pivots, numpy.eye(len(opened)), excess, slowest)


def _opened(rows: Array) -> tuple[Array, list[int]]:
    """The rows turned so that each opens at most one column, and which rows do: the first ones where none depends."""
    n_rows, h = rows.shape
    least = _ROUNDING * EPS * numpy.sqrt(numpy.einsum("ij,ij->i", rows, rows))
    if n_rows >= h:
        upper = upper_factor(rows.T)
        if (numpy.abs(numpy.einsum("ii->i", upper[:, :h])) > least[:h]).all():
            return numpy.ascontiguousarray(upper.T), list(range(h))
    return _reflected(rows.copy(), least)


def _reflected(rows: Array, least: Array) -> tuple[Array, list[int]]:
    """The same by reflections row by row, changing the rows; what is left of a row is zero if it is below ``least``."""
    h = rows.shape[1]
    opened: list[int] = []
    for i, row in enumerate(rows):
        used = len(opened)
        if used == h:
            break
        rest = row[used:]
        norm = float(numpy.vdot(rest, rest)) ** 0.5
        if norm <= least[i]:
            rest[:] = 0.0
            continue
        mirror = rest.copy()
        mirror[0] += norm if rest[0] >= 0 else -norm
        below = rows[i:, used:]
        below -= numpy.outer(below @ mirror, mirror * (2 / float(numpy.vdot(mirror, mirror))))
        rest[1:] = 0.0
        opened.append(i)
    return rows, opened


def _gaps(rates: Array, strengths: Array, pivots: Array, pivot_strengths: Array) -> Array:
    """``rates_i - pivots_j`` without cancellation; zero instead of positive.

    A growing row that is faster than a column's pivot has no entry there, up to rounding.
    """
    return numpy.minimum(_differences(rates, strengths, pivots, pivot_strengths), 0.0)


def _excess(modes: NetworkModes, slowest: float, strength: float) -> Array:
    """Rates of all rows minus that of the slowest pivot; without cancellation where that matters, in growing ones."""
    excess = modes.rates - slowest
    growing = slice(0, modes.n_growing)
    pivot, its_strength = numpy.array([slowest]), numpy.array([strength])
    excess[growing] = _differences(modes.rates[growing], modes.strengths[growing], pivot, its_strength)[:, 0]
    return excess


def _differences(rates: Array, strengths: Array, pivots: Array, pivot_strengths: Array) -> Array:
    """``rates_i - pivots_j`` without cancellation, as in ``balanced_modes``."""
    difference = strengths[:, None] - pivot_strengths
    largest = max(float(strengths.max(initial=0.0)), float(pivot_strengths.max(initial=0.0)))
    difference[numpy.abs(difference) <= 4 * EPS * largest] = 0.0
    total = rates[:, None] + pivots
    close = difference * (strengths[:, None] + pivot_strengths) / numpy.maximum(total, 1e-300)
    return numpy.where(pivots > 0, close, rates[:, None])
