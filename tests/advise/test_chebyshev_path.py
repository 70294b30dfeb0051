from __future__ import annotations

import math

import numpy
import pytest

from separatrix.advise.chebyshev_path import (
    DEGREE,
    chebyshev_path,
    doubling_panels,
    first_panel,
    fitting_degree,
    squared_distance,
)
from separatrix.core import NotConverged


def sigmoids(times: numpy.ndarray) -> numpy.ndarray:
    """Two modes, one fast and one late: (n, 1, 2)."""
    return numpy.stack([1 / (1 + numpy.exp(4 - 20 * times)), numpy.tanh(0.3 * times)], -1)[:, None]


def test_panels_double_from_zero_and_cover_what_is_asked() -> None:
    panels = doubling_panels(0.0, 10.0, 1.0)
    numpy.testing.assert_allclose(panels, [[0, 1], [1, 3], [3, 7], [7, 10]])
    numpy.testing.assert_allclose(doubling_panels(2.0, 5.0, 1.0), [[2, 3], [3, 5]])
    assert doubling_panels(0.0, 0.5, 1.0).tolist() == [[0.0, 0.5]]
    low, high = doubling_panels(3.0, 3.0, 1.0)[0]
    assert low == 3.0 < high
    assert len(doubling_panels(0.0, 1e6, 1e-3)) == 30
    assert doubling_panels(0.0, 5.0, math.inf).tolist() == [[0.0, 5.0]]


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-10, 1e-30])
def test_values_are_interpolated_to_the_tolerance_in_any_order(tol: float) -> None:
    times = numpy.concatenate([numpy.linspace(0, 50, 400), [3.0, 0.0, 50.0, 3.0]])
    numpy.random.default_rng(0).shuffle(times)
    found, n_nodes = chebyshev_path(sigmoids, times, doubling_panels(0.0, 50.0, first_panel(10.0, tol)), tol)
    assert abs(found - sigmoids(times)).max() < max(10 * tol, 1e-12)
    assert n_nodes % (DEGREE + 1) == 0


def test_one_long_panel_is_halved_until_the_transient_is_seen() -> None:
    times = numpy.linspace(0, 50, 300)
    found, n_nodes = chebyshev_path(sigmoids, times, numpy.array([[0.0, 50.0]]), 1e-8)
    assert abs(found - sigmoids(times)).max() < 1e-7
    assert n_nodes > 10 * (DEGREE + 1)


def test_what_has_no_series_is_refused() -> None:
    def step(times: numpy.ndarray) -> numpy.ndarray:
        return (times > math.pi).astype(float)[:, None]

    with pytest.raises(NotConverged, match="did not converge to 1e-08"):
        chebyshev_path(step, numpy.array([1.0, 3.2]), numpy.array([[0.0, 5.0]]), 1e-8)


def test_short_panels_need_a_low_degree_and_it_suffices() -> None:
    assert fitting_degree(5.0, 10.0, 1e-10) == DEGREE
    degree = fitting_degree(10.0, 0.05, 1e-6)
    assert 6 <= degree < DEGREE
    times = numpy.linspace(0, 0.05, 50)
    found, n_nodes = chebyshev_path(sigmoids, times, numpy.array([[0.0, 0.05]]), 1e-6, degree)
    assert n_nodes == degree + 1
    assert abs(found - sigmoids(times)).max() < 1e-6
    assert fitting_degree(0.0, 1.0, 1e-6) == 6


def test_the_first_panel_is_accepted_at_once() -> None:
    for tol in (1e-6, 1e-10):
        length = first_panel(10.0, tol)  # the fast sigmoid has rate 20
        times = numpy.linspace(0, length, 99)
        _, n_nodes = chebyshev_path(sigmoids, times, numpy.array([[0.0, length]]), tol)
        assert n_nodes == DEGREE + 1


def test_squared_distance_is_that_of_the_whole() -> None:
    draws = numpy.random.default_rng(1)
    values, target = draws.normal(size=(700, 30, 40)), draws.normal(size=(30, 40))
    numpy.testing.assert_allclose(squared_distance(values, target), ((values - target) ** 2).sum((1, 2)), rtol=1e-12)
    assert squared_distance(values[:0], target).shape == (0,)
