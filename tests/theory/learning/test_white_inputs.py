from __future__ import annotations

import pytest
import torch

from helpers import checks, seeded
from separatrix.core import OutsideTheory, ShapeError
from separatrix.dynamics import LinearNetworkFlow, integrate_layers
from separatrix.matrices import balanced_pair
from separatrix.tasks import semantic_task
from separatrix.theory import BalancedFlow, NotWhite, NotWhiteWarning, input_whiteness, whiten

F64 = torch.float64


def network(n_in: int = 3, n_out: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    return balanced_pair(1.0, n_in, 2, n_out, scale=0.4, generator=seeded(0))


def data(n_samples: int = 40, mix: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = seeded(1)
    x = torch.randn(n_samples, 3, generator=generator, dtype=F64)
    x = x + mix * x[:, [1, 2, 0]]
    return x, x @ torch.randn(3, 2, generator=generator, dtype=F64)


def descent(w1: torch.Tensor, w2: torch.Tensor, x: torch.Tensor, y: torch.Tensor, time: float) -> torch.Tensor:
    """Plain gradient descent on the data, the slow way."""
    steps = 20_000
    for _ in range(steps):
        error = x @ w1.mT @ w2.mT - y
        g1, g2 = w2.mT @ error.mT @ x / x.shape[0], error.mT @ x @ w1.mT / x.shape[0]
        w1, w2 = w1 - time / steps * g1, w2 - time / steps * g2
    return w2 @ w1


@pytest.mark.slow
@checks(BalancedFlow.product, by="gradient descent on the data")
def test_white_data_give_the_flow_of_descent() -> None:
    x, y = data()
    x = 1.7 * whiten(x)  # white, with variance 1.7^2
    w1, w2 = network()
    flow = BalancedFlow.from_data(w1, w2, x, y)
    assert flow.input_var == pytest.approx(1.7**2)
    assert torch.allclose(flow.product(0.8), descent(w1, w2, x, y, 0.8), atol=2e-4)  # first order in the step


def test_data_that_are_not_white_are_refused_with_the_deviation() -> None:
    x, y = data()
    w1, w2 = network()
    values = torch.linalg.eigvalsh(x.mT @ x / 40)
    expected = float(((values - values.mean()) / values.mean()).abs().max())
    with pytest.raises(NotWhite, match=r"not white: .*theory\.whiten.*LinearNetworkFlow") as caught:
        BalancedFlow.from_data(w1, w2, x, y)
    assert caught.value.deviation == pytest.approx(expected)
    assert isinstance(caught.value, OutsideTheory)


def test_what_is_refused_would_have_been_wrong_and_can_be_allowed() -> None:
    x, y = data()
    w1, w2 = network()
    with pytest.warns(NotWhiteWarning, match="computed as if they were"):
        flow = BalancedFlow.from_data(w1, w2, x, y, allow_non_white=True)
    times = torch.tensor([0.0, 1.0], dtype=F64)
    path = integrate_layers(LinearNetworkFlow(y.mT @ x / 40, x.mT @ x / 40), (w1, w2), times)
    assert float((flow.product(1.0) - path.product[1]).norm() / path.product[1].norm()) > 0.05


def test_one_hot_inputs_are_white_with_their_own_variance() -> None:
    task = semantic_task()
    assert input_whiteness(torch.eye(8, dtype=F64)).input_var == pytest.approx(1 / 8)
    w1, w2 = balanced_pair(0.0, 8, 8, 8, scale=0.1, generator=seeded(2))
    flow = BalancedFlow.from_data(w1, w2, task.inputs, task.targets)
    assert flow.input_var == pytest.approx(1 / 8)
    assert torch.allclose(flow.target, 8 * task.corr_yx)


def test_float32_data_that_were_whitened_are_white_enough() -> None:
    x = whiten(data()[0].float())
    assert x.dtype is torch.float32
    w1, w2 = network()
    BalancedFlow.from_data(w1, w2, x, data()[1].float())


def test_whitened_inputs_are_white_and_turned_as_little_as_possible() -> None:
    x = data()[0]
    white = whiten(x)
    assert input_whiteness(white).deviation < 1e-12
    move = torch.linalg.lstsq(x, white).solution
    assert torch.allclose(move, move.mT)  # the symmetric root: no rotation
    with pytest.raises(OutsideTheory, match="independent samples"):
        whiten(x[:2])


def test_too_few_samples_are_named() -> None:
    w1, w2 = network()
    x, y = data(2)
    with pytest.raises(NotWhite, match="only 2 samples of 3 inputs"):
        BalancedFlow.from_data(w1, w2, x, y)


@pytest.mark.parametrize(("x", "y"), [((4, 3), (5, 2)), ((3,), (3, 2)), ((0, 3), (0, 2))])
def test_bad_data_are_refused(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    w1, w2 = network()
    with pytest.raises(ShapeError):
        BalancedFlow.from_data(w1, w2, torch.ones(x, dtype=F64), torch.ones(y, dtype=F64))


def test_inputs_and_targets_of_two_precisions_and_a_readable_flow() -> None:
    one = 0.1 * torch.eye(2, dtype=torch.float64)
    x = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    flow = BalancedFlow.from_data(one, one, x, x.double())
    torch.testing.assert_close(flow.product(1e9), torch.eye(2, dtype=torch.float64))
    assert repr(flow) == "BalancedFlow(2-2-2, balance = 0, tau = 1, float64)"
