"""The fast product against the reference closed form, against integration, and where it must not be used."""

from __future__ import annotations

import numpy
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.integrate import solve_ivp

from helpers import seeded
from separatrix.matrices import balanced_factors, balanced_pair
from separatrix.theory import BalancedFlow
from separatrix.theory.learning.one_network import network_product
from separatrix.theory.learning.one_network.hidden_bases import HiddenBasis, echelon, given as given_basis, pivoted
from separatrix.theory.learning.one_network.network_modes import NetworkModes
from separatrix.theory.learning.one_network.network_product import NetworkProduct, evaluated
from separatrix.theory.learning.one_network.plain_arrays import PlainNetwork, plain_network
from separatrix.theory.learning.row_echelon import row_echelon

F64 = torch.float64
SHAPES = [(4, 4, 4), (1, 1, 1), (3, 1, 4), (2, 7, 3), (5, 3, 2), (2, 3, 5), (4, 2, 4), (7, 2, 2), (2, 2, 9)]
TIMES = numpy.array([0.0, 1e-9, 0.1, 1.0, 5.0, 40.0, 1e3, 1e9, 1e200])


def draw(shape: tuple[int, int, int], balance: float, seed: int = 0, scale: float = 0.4):
    n_in, n_hidden, n_out = shape
    if (balance > 0 and n_hidden > n_out) or (balance < 0 and n_hidden > n_in):
        return None
    generator = seeded(100 * seed + sum(shape))
    w1, w2 = balanced_pair(balance, n_in, n_hidden, n_out, scale=scale, generator=generator)
    return w1, w2, torch.randn(n_out, n_in, dtype=F64, generator=generator)


def reference(w1, w2, corr, times: numpy.ndarray) -> numpy.ndarray:
    return BalancedFlow(w1, w2, corr).product(torch.from_numpy(times)).numpy()


def apart(found: numpy.ndarray, expected: numpy.ndarray) -> float:
    """Largest difference, at each time relative to the largest entry there."""
    sizes = numpy.maximum(abs(expected).max((1, 2)), 1e-300)
    return float((abs(found - expected).max((1, 2)) / sizes).max())


def integrated(w1, w2, corr, times: numpy.ndarray) -> numpy.ndarray:
    """The weights themselves, by SciPy, from the equations of gradient flow."""
    h, i, o = w1.shape[0], w1.shape[1], w2.shape[0]

    def rate(_t: float, y: numpy.ndarray) -> numpy.ndarray:
        a, b = y[: h * i].reshape(h, i), y[h * i :].reshape(o, h)
        error = corr.numpy() - b @ a
        return numpy.concatenate([(b.T @ error).ravel(), (error @ a.T).ravel()])

    start = numpy.concatenate([w1.numpy().ravel(), w2.numpy().ravel()])
    found = solve_ivp(rate, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-14).y
    return found[h * i :].T.reshape(-1, o, h) @ found[: h * i].T.reshape(-1, h, i)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("balance", [0.0, 1e-8, 1.0, -1.0, 1e3, -1e3])
def test_every_shape_and_balance_agrees_with_the_reference(shape: tuple[int, int, int], balance: float) -> None:
    for seed in range(3):
        drawn = draw(shape, balance, seed)
        if drawn is None:
            return
        network = plain_network(*drawn)
        assert network is not None
        expected = reference(*drawn, TIMES)
        found = NetworkProduct(network, TIMES.max()).product(TIMES)
        assert apart(found, expected) < 3e-11
        assert numpy.array_equal(found[0], drawn[1].numpy() @ drawn[0].numpy())
        short = TIMES[TIMES < 0.5]
        assert apart(NetworkProduct(network, 0.1).product(short), expected[: len(short)]) < 3e-11


@pytest.mark.parametrize("shape", [(4, 4, 4), (3, 5, 6), (6, 2, 3)])
@pytest.mark.parametrize("balance", [0.0, 2.0])
def test_it_agrees_with_integration(shape: tuple[int, int, int], balance: float) -> None:
    drawn = draw(shape, balance, 5)
    network = plain_network(*drawn)
    times = numpy.linspace(0, 6, 13)
    assert apart(NetworkProduct(network, 6.0).product(times), integrated(*drawn, times)) < 1e-9


@pytest.mark.parametrize("name", ["given", "pivoted", "echelon"])
def test_every_hidden_basis_gives_the_same_product(name: str) -> None:
    for shape, balance in (((4, 4, 4), 1.0), ((5, 3, 4), 0.5), ((3, 3, 5), -0.5), ((6, 2, 6), 0.0)):
        drawn = draw(shape, balance, 3)
        modes = NetworkModes.of(plain_network(*drawn))
        times = numpy.array([0.05, 0.2])
        basis = {"given": given_basis(modes, 0.2), "pivoted": pivoted(modes), "echelon": echelon(modes)}[name]
        assert basis is not None
        assert basis.name == name
        found = modes.outputs @ evaluated(modes, basis, times) @ modes.inputs.T
        assert apart(found, reference(*drawn, times)) < 1e-12


def test_echelon_rows_are_those_of_the_plain_twin_up_to_signs() -> None:
    for shape, balance in (((4, 4, 4), 0.0), ((5, 3, 4), 0.5), ((3, 5, 5), 0.0)):
        for seed in range(4):
            modes = NetworkModes.of(plain_network(*draw(shape, balance, seed)))
            twin = row_echelon(torch.from_numpy(modes.rows))[0].numpy()
            rows = echelon(modes).rows
            numpy.testing.assert_allclose(abs(rows), abs(twin[:, : rows.shape[1]]), atol=1e-13)
            assert abs(twin[:, rows.shape[1] :]).max(initial=0.0) < 1e-13


def degenerate() -> dict[str, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    eye, generator = torch.eye(4, dtype=F64), seeded(7)
    w1, w2 = balanced_pair(0.0, 4, 4, 4, scale=0.5, generator=generator)
    random = torch.randn(4, 4, dtype=F64, generator=generator)
    flipped = torch.diag(torch.tensor([1.0, 1.0, 1.0, -1.0], dtype=F64))
    low = torch.outer(random[0], random[1])
    narrow = balanced_factors(low, 0.0, 4, generator=generator)
    return {
        "repeated singular values": (w1, w2, 2 * eye),
        "task zero": (w1, w2, 0 * eye),
        "task of rank one": (w1, w2, low),
        "wrong sign": (w1 @ flipped, w2, random),
        "right sign": (w1, w2, random),
        "start of rank one": (*narrow, random),
        "tiny": (1e-9 * w1, 1e-9 * w2, random),
        "huge": (1e3 * w1, 1e3 * w2, random),
        "huge task": (w1, w2, 1e6 * random),
        "tiny task": (w1, w2, 1e-9 * random),
        "aligned": (0.1 * eye, 0.1 * eye, torch.diag(torch.tensor([3.0, 2.0, 2.0, 0.0], dtype=F64))),
    }


@pytest.mark.parametrize("name", degenerate())
def test_degenerate_networks_agree_with_the_reference_or_are_left_to_it(name: str) -> None:
    drawn = degenerate()[name]
    network = plain_network(*drawn)
    assert network is not None
    scale = float(torch.linalg.matrix_norm(drawn[2], ord=2)) + float((drawn[1] @ drawn[0]).norm())
    times = numpy.array([0.0, 0.1, 1.0, 5.0, 30.0, 1e4]) / max(scale, 1e-3)
    expected = reference(*drawn, times)
    size = max(abs(expected).max(), 1e-300)
    assert abs(NetworkProduct(network, times.max()).product(times) - expected).max() < 1e-11 * size


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 7)] * 3),
    balance=st.sampled_from([0.0, 1e-6, 0.3, 5.0, 200.0]),
    sign=st.sampled_from([1, -1]),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-6, 0.01, 0.5, 3.0]),
    horizon=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e4]),
)
def test_random_networks_agree_with_the_reference(sizes, balance, sign, seed, scale, horizon) -> None:
    drawn = draw(sizes, sign * balance, seed, scale)
    if drawn is None:
        return
    network = plain_network(*drawn)
    assert network is not None
    times = numpy.linspace(horizon / 7, horizon, 7)
    expected = reference(*drawn, times)
    found = NetworkProduct(network, horizon).product(times)
    assert abs(found - expected).max() <= 1e-11 * max(abs(expected).max(), 1e-300)


def test_what_is_not_one_plain_balanced_network_is_left_to_others() -> None:
    w1, w2, corr = draw((3, 3, 3), 1.0)
    assert isinstance(plain_network(w1, w2, corr), PlainNetwork)
    assert isinstance(plain_network(w1.numpy(), w2.numpy(), corr.numpy()), PlainNetwork)
    others = [
        (w1.float(), w2, corr),
        (w1.clone().requires_grad_(), w2, corr),
        (w1[None], w2[None], corr[None]),
        (w1 + 1e-3, w2, corr),
        (w1[:2], w2, corr),
        (w1, w2, corr[:2]),
        (0 * w1, 0 * w2, corr),
        (w1, w2, corr * float("nan")),
        (w1 * float("inf"), w2, corr),
        (w1.tolist(), w2, corr),
        (torch.nn.Parameter(w1), w2, corr),
    ]
    for other in others:
        assert plain_network(*other) is None
    assert torch.func.vmap(lambda a: a * (plain_network(a, w2, corr) is None))(w1[None]).equal(w1[None])


def test_a_settled_product_is_its_limit_and_saddles_never_settle() -> None:
    known = 0
    for shape in SHAPES:
        for balance, scale in ((0.0, 0.4), (1.0, 0.01), (-2.0, 2.0), (100.0, 0.3), (-100.0, 0.3)):
            drawn = draw(shape, balance, scale=scale)
            if drawn is None:
                continue
            network = plain_network(*drawn)
            assert network is not None
            flow = NetworkProduct(network, 1e6)
            if flow.settled == numpy.inf:
                continue
            known += 1
            after = numpy.array([flow.settled, 3 * flow.settled])
            limit = BalancedFlow(*drawn).limit().numpy()
            assert apart(reference(*drawn, after), numpy.stack([limit, limit])) <= 1e-14
    assert known >= 10
    # a start without weight along the weakest mode rests on a saddle before it learns that mode, if ever
    aligned = torch.diag(torch.tensor([1.0, 0.0], dtype=F64))
    network = plain_network(aligned, aligned, torch.diag(torch.tensor([2.0, 1.0], dtype=F64)))
    assert network is not None
    assert NetworkProduct(network, 1e6).settled == numpy.inf


def test_many_times_are_not_spent_on_a_basis_that_fails_at_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, times = draw((30, 30, 30), 0.0, seed=4, scale=0.3), numpy.linspace(0, 1, 40)
    network = plain_network(*drawn)
    assert network is not None
    flow = NetworkProduct(network, 1.0)
    assert flow.basis.name == "pivoted"
    tried: list[tuple[str, int]] = []
    plain = network_product._states_and_system

    def counted(modes: NetworkModes, basis: HiddenBasis, moments: numpy.ndarray):
        tried.append((basis.name, len(moments)))
        return plain(modes, basis, moments)

    monkeypatch.setattr(network_product, "_states_and_system", counted)
    found = flow.product(times)
    assert tried[0] == ("pivoted", 1)
    assert {basis for basis, _ in tried[1:]} == {"echelon"}
    assert sum(many for _, many in tried) == len(times) + 1
    assert apart(found, reference(*drawn, times)) < 1e-11
