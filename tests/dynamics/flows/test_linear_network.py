from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from separatrix.core import ACTIVATIONS, InvalidInput, Outcome, ShapeError
from separatrix.dynamics import Descent, LinearNetworkFlow, chain_product, integrate_layers
from separatrix.matrices import balance_matrix, balanced_pair, fit_balance

F64 = torch.float64


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=F64, generator=generator)


def softsign(h: torch.Tensor) -> torch.Tensor:
    return h / (1 + h.abs())


@pytest.mark.parametrize(
    "activation",
    [*ACTIVATIONS, ACTIVATIONS["tanh"], softsign],
    ids=lambda given: getattr(given, "name", str(given)).split()[0],
)
@pytest.mark.parametrize("sizes", [(3, 2), (3, 4, 2), (3, 4, 5, 2)])
def test_gradients_are_those_of_autograd(activation: Any, sizes: tuple[int, ...], generator: torch.Generator) -> None:
    x, y = normal(generator, 7, 3), normal(generator, 7, 2)
    flow = LinearNetworkFlow(inputs=x, targets=y, activation=activation, weight_decay=0.1)
    layers = [normal(generator, b, a).requires_grad_() for a, b in itertools.pairwise(sizes)]
    total = flow.loss(layers) + 0.05 * sum(layer.square().sum() for layer in layers)
    for found, expected in zip(flow.gradient(layers), torch.autograd.grad(total, layers), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize(
    "activation", ["gelu", softsign], ids=lambda given: getattr(given, "name", str(given)).split()[0]
)
def test_the_derivative_of_the_velocity_is_that_of_finite_differences(
    activation: Any, generator: torch.Generator
) -> None:
    x, y = normal(generator, 7, 3), normal(generator, 7, 2)
    flow = LinearNetworkFlow(inputs=x, targets=y, activation=activation, widths=(3, 4, 2))
    state, u, h = normal(generator, 1, 20), normal(generator, 1, 20), 1e-6
    differences = (flow.velocity(state + h * u) - flow.velocity(state - h * u)) / (2 * h)
    torch.testing.assert_close(flow.jvp(state, u), differences, atol=1e-7, rtol=1e-7)  # the square of the step


def test_correlations_give_the_gradients_of_the_samples(generator: torch.Generator) -> None:
    x, y = normal(generator, 9, 3), normal(generator, 9, 2)
    layers = (normal(generator, 4, 3), normal(generator, 4, 4), normal(generator, 2, 4))
    data = LinearNetworkFlow(inputs=x, targets=y)
    moments = LinearNetworkFlow(y.mT @ x / 9, x.mT @ x / 9)
    for a, b in zip(data.gradient(layers), moments.gradient(layers), strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)
    floor = data.loss([torch.linalg.lstsq(x, y).solution.mT])
    torch.testing.assert_close(data.loss(layers) - floor, moments.loss(layers), atol=1e-11, rtol=0)


def test_integration_has_the_order_it_promises() -> None:
    weight = torch.tensor([[0.3]], dtype=F64)
    flow = LinearNetworkFlow(torch.tensor([[2.0]], dtype=F64))
    errors = []
    for rtol in (1e-6, 1e-9, 1e-12):
        found = integrate_layers(flow, (weight,), [3.0], rtol=rtol, atol=rtol).product[0, 0, 0]
        errors.append(abs(float(found) - (2 - 1.7 * torch.exp(torch.tensor(-3.0, dtype=F64)).item())))
    assert errors[0] < 1e-5
    assert errors[2] < 1e-12
    assert errors[2] < errors[0]


def test_each_network_has_its_own_steps(generator: torch.Generator) -> None:
    w1, w2 = balanced_pair(torch.tensor([0.0, 30.0]), 3, 3, 3, scale=0.3, generator=generator)
    corr = normal(generator, 2, 3, 3)
    both = integrate_layers(LinearNetworkFlow(corr), (w1, w2), [0.5, 2.0])
    assert both.evaluations[1] > both.evaluations[0]
    alone = integrate_layers(LinearNetworkFlow(corr[0]), (w1[0], w2[0]), [0.5, 2.0])
    torch.testing.assert_close(both.product[:, 0], alone.product, atol=1e-13, rtol=0)
    assert int(alone.evaluations) == int(both.evaluations[0])


def test_running_out_of_steps_is_an_outcome_with_nan(generator: torch.Generator) -> None:
    w1, w2 = balanced_pair(torch.tensor([0.0, 500.0]), 3, 3, 3, scale=0.3, generator=generator)
    path = integrate_layers(LinearNetworkFlow(normal(generator, 3, 3)), (w1, w2), [0.0, 3.0], max_steps=60)
    assert path.outcome.tolist() == [Outcome.COMPLETED, Outcome.OUT_OF_STEPS]
    assert not path.ok
    assert torch.isnan(path.product[1, 1]).all()
    assert torch.isfinite(path.product[:, 0]).all()
    assert torch.isfinite(path.product[0]).all()


def test_balance_is_conserved_for_any_inputs_and_decays_with_weight_decay(generator: torch.Generator) -> None:
    x = normal(generator, 3, 5)
    layers = (normal(generator, 4, 3), normal(generator, 2, 4))
    corr = normal(generator, 2, 3)
    for decay in (0.0, 0.3):
        path = integrate_layers(
            LinearNetworkFlow(corr, x @ x.mT / 5, weight_decay=decay), layers, [0.0, 1.0], rtol=1e-12
        )
        before, after = balance_matrix(*path.layers)
        expected = before * torch.exp(torch.tensor(-2 * decay, dtype=F64))
        torch.testing.assert_close(after, expected, atol=1e-9, rtol=0)


def test_descent_changes_the_balance_by_the_square_of_the_step(generator: torch.Generator) -> None:
    layers = (normal(generator, 4, 3), normal(generator, 2, 4))
    flow = LinearNetworkFlow(normal(generator, 2, 3))
    path = flow.descend(layers, Descent(0.01), 1)
    g1, g2 = flow.gradient(layers)
    before, after = balance_matrix(*path.layers)
    torch.testing.assert_close(after - before, 1e-4 * (g2.mT @ g2 - g1 @ g1.mT), atol=1e-13, rtol=0)


def test_descent_error_is_first_order_in_the_step(generator: torch.Generator) -> None:
    w1, w2 = balanced_pair(1.0, 3, 3, 3, scale=0.3, generator=generator)
    flow = LinearNetworkFlow(normal(generator, 3, 3))
    exact = integrate_layers(flow, (w1, w2), [1.0]).product[0]
    errors = [
        float((flow.descend((w1, w2), Descent(1 / n), n, record_every=n).product[-1] - exact).abs().max())
        for n in (100, 200, 400)
    ]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_optimisers_are_those_of_torch(kind: str, generator: torch.Generator) -> None:
    layers = [normal(generator, 4, 3), normal(generator, 2, 4)]
    flow = LinearNetworkFlow(normal(generator, 2, 3))
    path = flow.descend(layers, Descent(0.01, kind), 25, record_every=25)
    parameters = [torch.nn.Parameter(layer.clone()) for layer in layers]
    optimiser = {
        "sgd": lambda: torch.optim.SGD(parameters, lr=0.01),
        "momentum": lambda: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
        "adam": lambda: torch.optim.Adam(parameters, lr=0.01),
    }[kind]()
    for _ in range(25):
        optimiser.zero_grad()
        flow.loss(parameters).backward()
        optimiser.step()
    for found, expected in zip(path.layers, parameters, strict=True):
        torch.testing.assert_close(found[-1], expected.detach(), atol=1e-12, rtol=0)


def test_relu_keeps_the_mean_balance_and_tanh_does_not(generator: torch.Generator) -> None:
    x, y = normal(generator, 12, 4), normal(generator, 12, 4)
    w1, w2 = balanced_pair(10.0, 4, 4, 4, generator=generator)
    drift = {}
    for activation in ("relu", "tanh"):
        flow = LinearNetworkFlow(inputs=x, targets=y, activation=activation)
        path = flow.descend((w1, w2), Descent(1e-3), 400, record_every=400)
        drift[activation] = abs(float(fit_balance(path.layers[0][-1], path.layers[1][-1]).mean) - 10)
    assert drift["relu"] < 0.02  # the square of the step, summed over steps
    assert drift["tanh"] > 0.1


def test_diverging_descent_says_so(generator: torch.Generator) -> None:
    flow = LinearNetworkFlow(normal(generator, 2, 2))
    path = flow.descend((normal(generator, 2, 2), normal(generator, 2, 2)), Descent(10.0), 60, record_every=60)
    assert int(path.outcome) == Outcome.DIVERGED


def test_bad_input_is_refused(generator: torch.Generator) -> None:
    corr = normal(generator, 2, 3)
    flow = LinearNetworkFlow(corr)
    with pytest.raises(ShapeError, match="layers must follow one another"):
        integrate_layers(flow, (torch.ones(4, 3), torch.ones(2, 5)), [1.0])
    with pytest.raises(ShapeError, match="layers map 4 to 2; the task needs 3 to 2"):
        integrate_layers(flow, (torch.ones(4, 4), torch.ones(2, 4)), [1.0])
    with pytest.raises(InvalidInput, match="times must not be negative and must not descend"):
        integrate_layers(flow, (torch.ones(4, 3), torch.ones(2, 4)), [1.0, 0.5])
    with pytest.raises(InvalidInput, match="give either corr_yx"):
        LinearNetworkFlow()
    with pytest.raises(InvalidInput, match="needs inputs and targets"):
        LinearNetworkFlow(corr, activation="relu")
    with pytest.raises(InvalidInput, match="momentum must lie in"):
        Descent(0.1, momentum=1.5)
    with pytest.raises(InvalidInput, match="lr must be a positive number"):
        Descent(0.0)
    with pytest.raises(InvalidInput, match="one entry per layer"):
        integrate_layers(LinearNetworkFlow(corr, learning_rates=(1.0,)), (torch.ones(4, 3), torch.ones(2, 4)), [1.0])


def test_products_of_chains_run_first_layer_first(generator: torch.Generator) -> None:
    a, b, c = normal(generator, 4, 3), normal(generator, 5, 4), normal(generator, 2, 5)
    torch.testing.assert_close(chain_product((a, b, c)), c @ b @ a)
