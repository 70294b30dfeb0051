from __future__ import annotations

import inspect
import threading

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, ShapeError
from separatrix.training import TrainingSettings, train
from short_training import X, Y, run, small_model


def line(value: float = 1.0) -> nn.Module:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, value)
    return model


def square(model: nn.Module, batch: int) -> Tensor:
    return model.weight.square().sum()  # type: ignore[union-attr, operator]


def test_the_same_seed_gives_the_same_metrics_and_another_seed_others() -> None:
    first, second, other = run(None), run(None), run(None, seed=1)
    assert first.history.records == second.history.records
    assert first.history.records != other.history.records


def test_training_lowers_the_error() -> None:
    _, errors = run(None, n_steps=200).history.column("error")
    assert errors[-1] < 0.5 * errors[0]


def test_the_loop_is_gradient_descent() -> None:
    model = line(1.0)
    settings = TrainingSettings(n_steps=3, lr=0.1, optimiser="sgd", beta1=0.0)
    train(model, int, square, settings)
    assert model.weight.item() == pytest.approx(0.8**3, rel=1e-6)  # w <- w - 0.1 * 2 w


def test_an_optimiser_of_ones_own_keeps_its_learning_rates_as_the_peak() -> None:
    model = line(1.0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.25)
    settings = TrainingSettings(n_steps=2, lr=9.0, warmup_steps=2)  # half of 0.25, then all of it
    train(model, int, square, settings, optimiser=optimiser)
    assert model.weight.item() == pytest.approx(0.75 * 0.5)


def test_global_generators_are_untouched() -> None:
    before = torch.get_rng_state()
    run(None, n_steps=6)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loss_that_is_not_finite_ends_the_run_at_the_last_good_parameters() -> None:
    model = line(1.0)

    def explode(model: nn.Module, step: int) -> Tensor:
        return square(model, step) * (float("nan") if step == 2 else 1.0)

    settings = TrainingSettings(n_steps=10, lr=0.1, optimiser="sgd", beta1=0.0)
    result = train(model, int, explode, settings)
    assert (result.ending, result.n_done, result.diverged_at) == ("diverged", 2, (2,))
    assert not result.ok
    assert model.weight.item() == pytest.approx(0.8)  # whose loss was finite; after the next update it was not
    assert "not finite (first at step 2)" in result.message()
    assert "lower lr" in result.message()
    assert [record["step"] for record in result.history.records] == [0, 1]


def test_a_gradient_that_is_not_finite_ends_the_run_before_the_update() -> None:
    model = line(1.0)

    def kink(model: nn.Module, step: int) -> Tensor:
        infinite = (model.weight - model.weight.detach()).abs().sqrt().sum()  # type: ignore[operator, union-attr]
        return square(model, step) + (infinite if step == 1 else 0.0)  # slope of the root at 0

    result = train(model, int, kink, TrainingSettings(n_steps=5, lr=0.1, optimiser="sgd", beta1=0.0))
    assert (result.ending, result.diverged_at, result.n_done) == ("diverged", (1,), 1)
    assert model.weight.item() == pytest.approx(0.8)


def test_too_large_a_learning_rate_is_found_out() -> None:
    settings = TrainingSettings(n_steps=500, lr=10.0, optimiser="sgd", beta1=0.0)
    model = line(1.0)
    result = train(model, int, square, settings)
    assert result.ending == "diverged"
    assert bool(torch.isfinite(model.weight).all())  # type: ignore[arg-type]


def test_a_diverged_run_that_is_asked_for_again_says_the_same(tmp_path: object) -> None:
    def explode(model: nn.Module, step: int) -> Tensor:
        return square(model, step) * (float("nan") if step == 2 else 1.0)

    settings = TrainingSettings(n_steps=10, lr=0.1)
    path = f"{tmp_path}/run.pt"
    first = train(line(), int, explode, settings, checkpoint=path)
    again = train(line(), int, explode, settings, checkpoint=path)
    assert (again.ending, again.diverged_at) == (first.ending, first.diverged_at) == ("diverged", (2,))


def test_measurements_see_evaluation_mode_and_no_gradients_at_the_steps_asked_for() -> None:
    seen = []

    def measure(model: nn.Module) -> dict[str, float]:
        seen.append((model.training, torch.is_grad_enabled()))
        return {"one": 1.0}

    result = train(line(), int, square, TrainingSettings(n_steps=7, lr=0.1, measure_every=3), measure=measure)
    assert seen == [(False, False)] * 3
    assert result.history.column("one")[0] == [2, 5, 6]


def test_records_are_plain_and_thinned_out_on_request() -> None:
    result = train(line(), int, square, TrainingSettings(n_steps=10, lr=0.1, log_every=4))
    assert result.history.column("loss")[0] == [0, 4, 8, 9]
    assert all(type(record["loss"]) is float for record in result.history.records)
    with pytest.raises(InvalidInput, match=r"unknown quantity of this history 'los'\. Did you mean 'loss'"):
        result.history.column("los")


def test_a_loss_with_one_number_too_many_is_refused() -> None:
    with pytest.raises(ShapeError, match="one number per member, 1; got 16"):
        train(small_model(), lambda step: slice(16), lambda model, index: (model(X[index]) - Y[index]).abs(),
              TrainingSettings(n_steps=1, lr=0.1))  # fmt: skip


def test_training_works_in_a_thread_where_no_signal_arrives() -> None:
    results = []
    thread = threading.Thread(target=lambda: results.append(run(None, n_steps=6)))
    thread.start()
    thread.join()
    assert results[0].ending == "finished"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": -1.0}, "lr must be a positive number"),
        ({"n_steps": -1}, "n_steps must be an integer of at least 0"),
        ({"beta1": 1.0}, r"beta1 must lie in \[0, 1\)"),
        ({"schedule": "cosine", "warmup_steps": 5}, "warmup_steps must be below n_steps"),
        ({"clip_norm": 0.0}, "clip_norm must be a positive number"),
        ({"save_every": 0}, "save_every must be an integer of at least 1"),
    ],
)
def test_settings_are_checked(change: dict[str, object], message: str) -> None:
    given = {"n_steps": 5, "lr": 0.1, **change}
    with pytest.raises(InvalidInput, match=message):
        TrainingSettings(**given)  # type: ignore[arg-type]


def test_unknown_names_are_refused_in_use_without_a_type_checker() -> None:
    settle = inspect.unwrap(TrainingSettings.__init__)  # what users call: checks of types are those of the tests
    answers = []
    for name in ("optimiser", "schedule"):
        with pytest.raises(InvalidInput) as caught:
            settle(object.__new__(TrainingSettings), n_steps=1, lr=0.1, **{name: "adm"})
        answers.append(str(caught.value))
    assert answers == [
        "unknown optimiser 'adm'. Did you mean 'adam'? Known: adam, rmsprop, sgd.",
        "unknown schedule 'adm'. Known: constant, cosine.",
    ]


def test_a_misspelt_setting_is_an_error() -> None:
    with pytest.raises(TypeError, match="clipnorm"):
        TrainingSettings(n_steps=1, lr=0.1, clipnorm=1.0)  # type: ignore[call-arg]
