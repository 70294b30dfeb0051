from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput
from separatrix.diagnose import rich_lazy, train_to_loss
from separatrix.diagnose.losses import loss_for, loss_function


@pytest.fixture
def data() -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(0)
    x = torch.randn(20, 4, generator=draws)
    return x, torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs(), x[:, 3]], dim=1)


def network(n_out: int = 3, scale: float = 0.4) -> nn.Sequential:
    draws = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, n_out))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, scale, generator=draws)
    return model


def test_mse_by_name_is_that_of_torch(data: tuple[Tensor, Tensor]) -> None:
    x, y = data
    model = network()
    with torch.no_grad():
        torch.testing.assert_close(loss_function("mse")(model(x), y), nn.functional.mse_loss(model(x), y))
        halved = 0.5 * (model(x) - y).square().sum(1).mean()
        torch.testing.assert_close(loss_function("half_mse")(model(x), y), halved)


def test_class_numbers_choose_cross_entropy_and_a_given_loss_stays(data: tuple[Tensor, Tensor]) -> None:
    x, y = data
    labels = y.argmax(1)
    assert loss_for(None, labels) == "cross_entropy"
    assert loss_for(None, y) == "mse"
    assert loss_for("mse", labels) == "mse"
    model = network()
    found = rich_lazy(model, (x, labels), target_loss=0.8)
    with torch.no_grad():
        assert found.loss_before == pytest.approx(float(nn.functional.cross_entropy(model(x), labels)), rel=1e-5)


def test_a_target_above_the_present_loss_is_refused_in_words(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    with torch.no_grad():
        present = float(nn.functional.mse_loss(model(data[0]), data[1]))
    for call in (train_to_loss, lambda m, d, target: rich_lazy(m, d, target_loss=target)):
        with pytest.raises(InvalidInput, match=rf"target_loss must lie below the present loss, {present:.3g}.*got 100"):
            call(copy.deepcopy(model), data, 100.0)


@pytest.mark.parametrize("n_out", [1, 3])
def test_the_automatic_rate_fits_the_loss_that_was_asked_for(n_out: int, data: tuple[Tensor, Tensor]) -> None:
    x, y = data[0], data[1][:, :n_out]
    rates = {
        loss: train_to_loss(network(n_out), (x, y), 1e-9, loss=loss, max_steps=1).lr for loss in ("mse", "half_mse")
    }
    # the gradient of torch's error is 2 / outputs of the other: equal steps in weight space
    assert rates["mse"] * 2 / n_out == pytest.approx(rates["half_mse"])


def test_an_automatic_rate_that_leaves_the_numbers_begins_again_with_a_smaller_one(data: tuple[Tensor, Tensor]) -> None:
    x = data[0]
    model = network(1)
    target = torch.zeros(len(x), 1)

    def steep(prediction: Tensor, wanted: Tensor) -> Tensor:
        return 1e4 * (prediction - wanted).square().mean()  # far steeper than what the kernel tells

    with torch.no_grad():
        first = float(steep(model(x), target))
    run = train_to_loss(copy.deepcopy(model), (x, target), 0.5 * first, loss=steep, max_steps=2000)
    assert run.ok
    assert all(bool(value.isfinite().all()) for value in run.state.values())
    given = train_to_loss(copy.deepcopy(model), (x, target), 0.5 * first, loss=steep, lr=1.0, max_steps=200)
    assert not given.ok  # a rate that somebody gave is taken as it is
