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
    path = chebyshev_path(sigmoids, times, doubling_panels(0.0, 50.0, first_panel(10.0, tol)), tol)
    found = path.values()
    assert abs(found - sigmoids(times)).max() < max(10 * tol, 1e-12)
    assert path.evaluations < len(times)


def test_one_long_panel_is_halved_until_the_transient_is_seen() -> None:
    times = numpy.linspace(0, 50, 300)
    path = chebyshev_path(sigmoids, times, numpy.array([[0.0, 50.0]]), 1e-8)
    assert abs(path.values() - sigmoids(times)).max() < 1e-7
    assert path.evaluations > 6 * (DEGREE + 1)


def test_what_has_no_series_is_refused() -> None:
    def step(times: numpy.ndarray) -> numpy.ndarray:
        return (times > math.pi).astype(float)[:, None]

    with pytest.raises(NotConverged, match="did not converge to 1e-08"):
        chebyshev_path(step, numpy.full(40, math.pi), numpy.array([[0.0, 5.0]]), 1e-8)
    few = numpy.array([1.0, 3.1, 3.2])  # no more than nodes: nothing is interpolated
    assert chebyshev_path(step, few, numpy.array([[0.0, 5.0]]), 1e-8).values().ravel().tolist() == [0.0, 0.0, 1.0]


def test_short_panels_need_a_low_degree_and_it_suffices() -> None:
    assert fitting_degree(5.0, 10.0, 1e-10) == DEGREE
    degree = fitting_degree(10.0, 0.05, 1e-6)
    assert 6 <= degree < DEGREE
    times = numpy.linspace(0, 0.05, 50)
    path = chebyshev_path(sigmoids, times, numpy.array([[0.0, 0.05]]), 1e-6, degree)
    assert path.evaluations == degree + 1
    assert abs(path.values() - sigmoids(times)).max() < 1e-6
    assert fitting_degree(0.0, 1.0, 1e-6) == 6


def test_the_first_panel_is_accepted_at_once() -> None:
    for tol in (1e-6, 1e-10):
        length = first_panel(10.0, tol)  # the fast sigmoid has rate 20
        times = numpy.linspace(0, length, 99)
        assert chebyshev_path(sigmoids, times, numpy.array([[0.0, length]]), tol).evaluations == DEGREE + 1


def test_squared_distance_is_that_of_the_whole() -> None:
    draws = numpy.random.default_rng(1)
    values, target = draws.normal(size=(700, 30, 40)), draws.normal(size=(30, 40))
    numpy.testing.assert_allclose(squared_distance(values, target), ((values - target) ** 2).sum((1, 2)), rtol=1e-12)
    assert squared_distance(values[:0], target).shape == (0,)


@pytest.mark.parametrize("order", ["rising", "mixed"])
@pytest.mark.parametrize("count", [30, 60_000])
def test_distances_of_a_path_are_those_of_its_values(order: str, count: int) -> None:
    times = numpy.linspace(0, 50, count)
    if order == "mixed":
        numpy.random.default_rng(0).shuffle(times)
    path = chebyshev_path(sigmoids, times, doubling_panels(0.0, 50.0, 0.2), 1e-10)
    for target in (numpy.array([[1.0, 1.0]]), numpy.array([[3.0, -2.0]]), sigmoids(times[-1:])[0]):
        values, distance = path.values_and_distance(target)
        assert abs(values - sigmoids(times)).max() < 1e-9
        expected = squared_distance(values, target)
        rounding = 4e-15 * abs(target).max() * numpy.sqrt(expected)  # of the values themselves, where they all but meet
        assert (abs(distance - expected) <= 1e-10 * expected + rounding + 1e-30).all()


def test_panels_of_few_times_are_exact_and_empty_ones_cost_nothing() -> None:
    seen: list[float] = []

    def counted(times: numpy.ndarray) -> numpy.ndarray:
        seen.extend(times)
        return sigmoids(times)

    times = numpy.array([0.0, 0.1, 0.9, 40.0, *numpy.linspace(41.0, 42.0, 50)])
    path = chebyshev_path(counted, times, numpy.array([[0.0, 1.0], [1.0, 39.0], [39.0, 41.0], [41.0, 42.0]]), 1e-10)
    assert path.evaluations == len(seen) <= 5 + 2 + DEGREE + 1
    assert numpy.array_equal(path.values()[:4], sigmoids(times[:4]))
    assert abs(path.values() - sigmoids(times)).max() < 1e-10
