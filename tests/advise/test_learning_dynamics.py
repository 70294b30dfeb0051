from __future__ import annotations

import numpy
import pytest
import torch

from separatrix.advise import learning_dynamics
from separatrix.core import ConvergenceWarning, InvalidInput, OutsideTheory
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow
from separatrix.theory.learning.one_network.network_product import NetworkProduct

F64 = torch.float64


@pytest.fixture
def network(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    w1, w2 = balanced_pair(1.0, 4, 3, 5, scale=0.4, generator=generator)
    return w1, w2, torch.randn(5, 4, dtype=F64, generator=generator)


def test_few_times_are_exact_and_dense_ones_interpolated(network) -> None:
    few = learning_dynamics(*network, [0.0, 1.0, 5.0])
    assert few.method == "exact"
    assert "3 times" in few.reason
    dense = learning_dynamics(*network, torch.linspace(0, 10, 500, dtype=F64))
    assert dense.method == "chebyshev"
    exact = BalancedFlow(*network)
    assert (dense.product - exact.product(dense.times)).abs().max() < 1e-9
    torch.testing.assert_close(dense.loss, exact.loss(dense.times), atol=1e-8, rtol=0)
    stiff = learning_dynamics(*network, torch.logspace(0, 6, 400, dtype=F64))
    assert stiff.method == "exact"
    assert "400 times" in stiff.reason


def test_a_batch_and_tensors_with_gradients_take_the_general_route(network) -> None:
    times = torch.logspace(0, 6, 500, dtype=F64)
    batch = learning_dynamics(*(part.expand(2, *part.shape) for part in network), times)
    assert batch.method == "exact"
    assert "many steps" in batch.reason
    torch.testing.assert_close(batch.product[:, 1], learning_dynamics(*network, times).product, atol=1e-9, rtol=0)
    free = network[2].clone().requires_grad_()
    assert learning_dynamics(*network[:2], free, [0.7]).loss.requires_grad


@pytest.mark.sampled(1, each="sizes")
@pytest.mark.parametrize("sizes", [(4, 3, 5), (4, 4, 4), (1, 1, 1), (6, 2, 3)])
@pytest.mark.parametrize("balance", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_auto_keeps_its_tolerance_at_any_number_of_times(sizes, balance: float, tol: float, generator) -> None:
    if balance and sizes[1] > sizes[2]:
        return
    w1, w2 = balanced_pair(balance, *sizes, scale=0.3, generator=generator)
    corr = torch.randn(sizes[2], sizes[0], dtype=F64, generator=generator)
    flow = BalancedFlow(w1, w2, corr, tau=2.0)
    for horizon in (0.1, 1.0, 100.0):
        for count in (1, 50, 1000):
            times = torch.linspace(horizon if count == 1 else 0.0, horizon, count, dtype=F64)
            found = learning_dynamics(w1, w2, corr, times, tau=2.0, tol=tol)
            exact = flow.product(times)
            assert (found.product - exact).abs().max() <= tol * exact.abs().max()
            assert (found.loss - flow.loss(times)).abs().max() <= 10 * tol * float(flow.loss(0.0))
            if found.method == "exact":
                assert (found.product - exact).abs().max() <= 1e-11 * exact.abs().max()


def test_auto_falls_back_where_no_hidden_basis_is_reliable(network, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "separatrix.theory.learning.one_network.network_product.evaluated"
    monkeypatch.setattr(module, lambda *_: None)
    found = learning_dynamics(*network, [0.5, 2.0])
    assert torch.equal(found.product, BalancedFlow(*network).product(torch.tensor([0.5, 2.0], dtype=F64)))


def test_all_routes_agree(network) -> None:
    times = [2.0, 0.0, 0.5]
    exact, dense, integrated = (
        learning_dynamics(*network, times, method) for method in ("exact", "chebyshev", "integration")
    )
    assert (dense.product - exact.product).abs().max() < 1e-9
    assert (integrated.product - exact.product).abs().max() < 1e-8
    assert integrated.method == "integration"


def test_unbalanced_weights_are_integrated_with_a_warning_or_refused(generator: torch.Generator) -> None:
    w1, w2, corr = (torch.randn(3, 3, dtype=F64, generator=generator) for _ in range(3))
    with pytest.warns(ConvergenceWarning, match="closed form does not hold, integrating instead"):
        found = learning_dynamics(w1, w2, corr, [0.5])
    assert found.method == "integration"
    assert "balanced" in found.reason
    with pytest.raises(OutsideTheory, match="must be balanced"):
        learning_dynamics(w1, w2, corr, [0.5], "exact")


def test_inputs_that_are_not_white_need_integration(network) -> None:
    corr_xx = torch.diag(torch.tensor([1.0, 2.0, 1.0, 1.0], dtype=F64))
    with pytest.raises(OutsideTheory, match="multiple of the identity"):
        learning_dynamics(*network, [0.5], "exact", corr_xx=corr_xx)
    with pytest.warns(ConvergenceWarning):
        assert learning_dynamics(*network, [0.5], corr_xx=corr_xx).method == "integration"
    assert learning_dynamics(*network, [0.5], corr_xx=torch.eye(4) / 8).method == "exact"


def test_bad_requests_are_refused(network) -> None:
    with pytest.raises(InvalidInput, match=r"unknown method 'exakt'. Did you mean 'exact'"):
        learning_dynamics(*network, [0.5], "exakt")
    with pytest.raises(InvalidInput, match="times must not be negative"):
        learning_dynamics(*network, [-0.5])
    for bad in (float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match=r"times must be finite; entry \(1,\)"):
            learning_dynamics(*network, torch.tensor([0.5, bad], dtype=F64))
    with pytest.raises(InvalidInput, match="tol"):
        learning_dynamics(*network, [0.5], tol=0.0)
    with pytest.raises(InvalidInput, match="tau"):
        learning_dynamics(*network, [0.5], tau=-1.0)
    assert learning_dynamics(*network, []).product.shape == (0, 5, 4)
    assert learning_dynamics(*network, [], "chebyshev").product.shape == (0, 5, 4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_exact_route_evaluates_each_time_once_and_gives_the_same_loss(
    dtype: torch.dtype, network, monkeypatch: pytest.MonkeyPatch
) -> None:
    w1, w2, corr = (tensor.to(dtype) for tensor in network)
    times = torch.linspace(0, 3, 20, dtype=torch.float64)
    expected = BalancedFlow(w1, w2, corr).loss(times)
    calls = []
    blocks = BalancedFlow._blocks
    monkeypatch.setattr(BalancedFlow, "_blocks", lambda self, t: calls.append(len(t)) or blocks(self, t))
    found = learning_dynamics(w1, w2, corr, times, method="exact")
    assert torch.equal(found.loss, expected)
    assert sum(calls) == (20 if dtype is torch.float64 else 40)  # single precision is rounded only once


@pytest.mark.parametrize("order", ["rising", "mixed"])
@pytest.mark.parametrize("count", [30, 900])
def test_a_training_that_is_over_is_computed_once(
    order: str, count: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    w1, w2 = balanced_pair(50.0, 6, 6, 6, scale=0.3, generator=generator)
    corr = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    times = torch.linspace(0, 60, count, dtype=torch.float64)
    if order == "mixed":
        times = times[torch.randperm(count, generator=generator)]
    seen: list[int] = []
    plain = NetworkProduct.product

    def counted(self: NetworkProduct, moments: numpy.ndarray) -> numpy.ndarray:
        seen.append(len(moments))
        return plain(self, moments)

    monkeypatch.setattr(NetworkProduct, "product", counted)
    found = learning_dynamics(w1, w2, corr, times, tau=0.7)
    assert sum(seen) <= 0.1 * count + 2
    assert "the limit" in found.reason
    assert torch.equal(found.times, times)
    exact = BalancedFlow(w1, w2, corr, 0.7)
    assert torch.allclose(found.product, exact.product(times), rtol=0, atol=1e-10)
    assert torch.allclose(found.loss, exact.loss(times), rtol=0, atol=1e-10)
