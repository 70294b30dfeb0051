"""All times in a few products against the plain twin, time by time, and against the reference."""

from __future__ import annotations

import dataclasses

import numpy
import pytest
import torch

from helpers import seeded
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow
from separatrix.theory.learning.one_network.hidden_bases import HiddenBasis, echelon, given, pivoted
from separatrix.theory.learning.one_network.network_modes import NetworkModes
from separatrix.theory.learning.one_network.network_product import NetworkProduct, evaluated
from separatrix.theory.learning.one_network.plain_arrays import plain_network
from separatrix.theory.learning.one_network.shared_rows import SharedRows

F64 = torch.float64
SHAPES = [(4, 4, 4), (1, 1, 1), (3, 1, 4), (2, 7, 3), (5, 3, 2), (7, 2, 2), (2, 2, 9), (2, 3, 5), (4, 5, 9)]


def draw(shape: tuple[int, int, int], balance: float, seed: int = 0, scale: float = 0.4):
    n_in, n_hidden, n_out = shape
    generator = seeded(100 * seed + sum(shape))
    w1, w2 = balanced_pair(balance, n_in, n_hidden, n_out, scale=scale, generator=generator)
    return w1, w2, torch.randn(n_out, n_in, dtype=F64, generator=generator)


def bases(modes: NetworkModes, horizon: float) -> list[HiddenBasis]:
    return [basis for basis in (given(modes, horizon), pivoted(modes), echelon(modes)) if basis is not None]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("balance", [0.0, 1.0, -1.0, 100.0])
def test_it_agrees_with_the_twin_in_every_basis_that_fits(shape: tuple[int, int, int], balance: float) -> None:
    if (balance > 0 and shape[1] > shape[2]) or (balance < 0 and shape[1] > shape[0]):
        return
    network = plain_network(*draw(shape, balance))
    assert network is not None
    modes = NetworkModes.of(network)
    compared = 0
    for horizon in (0.05, 3.0, 40.0):
        times = numpy.linspace(1e-3, horizon, 9)
        for basis in bases(modes, horizon):
            twin = evaluated(modes, basis, times)
            if twin is None or not SharedRows.fits(modes, basis, horizon):
                continue
            found = SharedRows(modes, basis).product(times)
            assert found is not None, basis.name
            expected = modes.outputs @ twin @ modes.inputs.T
            assert abs(found - expected).max() <= 1e-12 * max(abs(expected).max(), 1e-12)
            compared += 1
    assert compared >= 4


def test_hidden_units_beyond_the_task_get_columns_of_growing_directions() -> None:
    modes = NetworkModes.of(plain_network(*draw((4, 5, 9), 100.0)))
    basis = pivoted(modes)
    assert basis is not None
    assert basis.n_unit == 5 > modes.n_task
    drawn, times = draw((4, 5, 9), 100.0), numpy.linspace(0, 80, 60)
    found = NetworkProduct(plain_network(*drawn), 80.0).product(times)
    expected = BalancedFlow(*drawn).product(torch.from_numpy(times)).numpy()
    assert abs(found - expected).max() < 1e-13 * abs(expected).max()


def test_many_times_take_it_and_few_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, seen = draw((20, 5, 10), 100.0), []
    plain = SharedRows.product
    monkeypatch.setattr(SharedRows, "product", lambda self, t: seen.append(len(t)) or plain(self, t))
    flow = NetworkProduct(plain_network(*drawn), 50.0)
    few, many = numpy.linspace(0, 50, 3), numpy.linspace(0, 50, 199)
    numpy.testing.assert_allclose(flow.product(many)[::99], flow.product(few), rtol=0, atol=1e-13)
    assert seen == [199]


def test_growths_that_differ_by_too_much_and_large_networks_do_not_fit() -> None:
    modes = NetworkModes.of(plain_network(*draw((4, 4, 4), 0.0)))
    basis = pivoted(modes)
    assert basis is not None
    longest = 150.0 / basis.excess[0]
    assert SharedRows.fits(modes, basis, 0.99 * longest)
    assert not SharedRows.fits(modes, basis, 1.01 * longest)
    times = numpy.linspace(0.5, 0.99, 9) * longest  # as far as it goes, still accurate
    expected = modes.outputs @ evaluated(modes, basis, times) @ modes.inputs.T
    assert abs(SharedRows(modes, basis).product(times) - expected).max() < 1e-12 * abs(expected).max()
    large = NetworkModes.of(plain_network(*draw((40, 40, 40), 0.0)))
    assert not SharedRows.fits(large, echelon(large), 1e-3)


def test_what_rounding_would_spoil_is_not_returned() -> None:
    modes = NetworkModes.of(plain_network(*draw((4, 4, 4), 0.0)))
    basis = given(modes, 0.05)
    assert basis is not None
    singular = dataclasses.replace(basis, rows=0 * basis.rows, gram=numpy.ones((4, 4)))
    assert SharedRows(modes, singular).product(numpy.linspace(0.01, 0.05, 9)) is None
