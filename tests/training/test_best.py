from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput
from separatrix.training import TrainingSettings, train


def line() -> nn.Linear:
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    return model


def square(model: nn.Module, step: int) -> Tensor:
    return model.weight.square().sum()  # type: ignore[union-attr, operator]


def settings(**changes: Any) -> TrainingSettings:
    usual: dict[str, Any] = {"n_steps": 6, "lr": 0.1, "optimiser": "sgd", "beta1": 0.0, "measure_every": 1}
    return TrainingSettings(**{**usual, "watch": "error", **changes})


def scripted(values: list[float]) -> Any:
    left = iter(values)
    return lambda model: {"error": next(left), "weight": model.weight.item()}


def test_the_state_of_the_best_measurement_is_kept() -> None:
    model = line()
    run = train(model, int, square, settings(), measure=scripted([5.0, 3.0, 4.0, 3.0, float("nan"), 6.0]))
    assert run.best is not None
    assert (run.best.step, run.best.value) == (1, 3.0)
    assert run.best.state["weight"].item() == pytest.approx(0.8**2)
    assert model.weight.item() == pytest.approx(0.8**6)  # the run itself went on
    model.load_state_dict(run.best.state)
    assert model.weight.item() == pytest.approx(0.8**2)


def test_the_greatest_value_can_be_the_best() -> None:
    run = train(line(), int, square, settings(best="greatest"), measure=scripted([1.0, 3.0, 2.0, 9.0, 4.0, 5.0]))
    assert run.best is not None
    assert (run.best.step, run.best.value) == (3, 9.0)


def test_rates_fall_after_every_measurement_without_a_new_best() -> None:
    model = line()
    train(model, int, square, settings(plateau_factor=0.5), measure=scripted([5.0, 5.0, 4.0, 4.5, 4.2, 1.0]))
    # rates: .1, .1, .05 (5.0 is no better than 5.0), .05, .025, .0125
    expected = 1.0
    for rate in (0.1, 0.1, 0.05, 0.05, 0.025, 0.0125):
        expected *= 1 - 2 * rate
    assert model.weight.item() == pytest.approx(expected, rel=1e-6)


def test_a_resumed_run_knows_its_best_state_and_rate(tmp_path: object) -> None:
    values = [5.0, 3.0, 4.0, 4.0, 2.0, 6.0]

    def stopping(model: nn.Module, step: int) -> Tensor:
        if step == stop_at:
            raise KeyboardInterrupt
        return square(model, step)

    page, path = settings(plateau_factor=0.5, save_every=1), f"{tmp_path}/run.pt"
    stop_at = -1
    whole = train(line(), int, stopping, page, measure=scripted(values))
    stop_at = 3
    with pytest.raises(KeyboardInterrupt):
        train(line(), int, stopping, page, measure=scripted(values), checkpoint=path)
    stop_at = -1
    rest = train(line(), int, stopping, page, measure=scripted(values[3:]), checkpoint=path)
    assert rest.resumed_at == 3
    assert rest.history.records == whole.history.records
    assert rest.best is not None
    assert whole.best is not None
    assert (rest.best.step, rest.best.value) == (whole.best.step, whole.best.value)
    assert torch.equal(rest.best.state["weight"], whole.best.state["weight"])


def test_a_quantity_that_is_not_measured_is_refused_with_the_near_ones() -> None:
    with pytest.raises(InvalidInput, match=r"unknown measured number to watch 'eror'\. Did you mean 'error'"):
        train(line(), int, square, settings(watch="eror"), measure=scripted([1.0] * 6))


def test_several_numbers_have_no_best() -> None:
    with pytest.raises(InvalidInput, match="a watched measurement must be one number"):
        train(line(), int, square, settings(), measure=lambda model: {"error": torch.ones(2)})


@pytest.mark.parametrize(
    "change", [{"plateau_factor": 0.0}, {"plateau_factor": 2.0}, {"watch": None, "plateau_factor": 0.5}]
)
def test_wrong_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="plateau_factor"):
        settings(**change)
