from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.core import InvalidInput, Outcome
from separatrix.diagnose import (
    compare_regimes,
    kernel_distance,
    linearised_prediction,
    pick_at_loss,
    regime_curve,
    rich_lazy,
    set_balance,
    stable_lr,
    tangent_kernel,
    train_to_loss,
)
from separatrix.diagnose.regime.batch_statistics import own_statistics
from separatrix.diagnose.regime.verdict import verdict_of
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow, ntk_distance


def network(first: float = 1.0, second: float = 1.0) -> nn.Module:
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
    with torch.no_grad():
        model[0].weight.mul_(first)
        model[2].weight.mul_(second)
    return model


@pytest.fixture
def data(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(24, 6, generator=generator)
    return x, torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs()], dim=1)


def test_a_heavy_first_layer_is_lazier_at_equal_loss(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    found = {}
    for name, balance in (("heavy first layer", -60.0), ("balanced", 0.0)):
        changed = copy.deepcopy(model)
        set_balance(changed, balance)
        found[name] = rich_lazy(changed, data, target_loss=0.25)
    comparison = compare_regimes(found, tolerance=0.25)  # the step that reaches the target may go past it
    assert list(comparison.runs) == ["heavy first layer", "balanced"]
    lazy, rich = comparison.runs.values()
    assert lazy.verdict.label == "lazy"
    assert lazy.feature_change < 0.2 * rich.feature_change
    assert lazy.linearised_error < 0.5 * rich.linearised_error
    assert "lazy" in repr(comparison)


def test_the_same_state_before_and_after_is_no_change_at_all(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    found = rich_lazy(model, data, after=model)
    assert found.verdict.label == "no word"  # a training that never happened was not lazy
    assert found.kernel_change == found.movement == found.linearised_error == 0
    assert found.feature_change == pytest.approx(0, abs=1e-12)
    assert found.loss_before == found.loss_after


def test_training_by_hand_and_by_function_agree_and_leave_the_model_alone(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    start = {name: value.clone() for name, value in model.state_dict().items()}

    def train(copied: nn.Module) -> None:
        optimiser = torch.optim.SGD(copied.parameters(), lr=0.05)
        for _ in range(20):
            optimiser.zero_grad()
            (copied(data[0]) - data[1]).square().mean().backward()
            optimiser.step()

    trained = copy.deepcopy(model)
    train(trained)
    by_function, by_state = rich_lazy(model, data, train_fn=train), rich_lazy(model, data, after=trained.state_dict())
    assert by_function.kernel_change == by_state.kernel_change > 0
    assert all(torch.equal(value, start[name]) for name, value in model.state_dict().items())
    rows = {row.layer: row for row in by_state.layers}
    assert set(rows) == {"0", "1", "2"}
    assert rows["0"].movement > 0
    assert rows["1"].feature_change > 0
    assert by_state.balance[0].pair == "0 -> 2"
    assert list(by_state.to_frame()["layer"]) == ["0", "1", "2"]


class Wrapped(nn.Module):
    """Dictionary inputs, tuple outputs, an embedding tied to the read-out, a layer that cannot be vectorised."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(9, 5), nn.GRU(5, 5, batch_first=True)
        self.read = nn.Linear(5, 9, bias=False)
        self.read.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> tuple[Tensor, None]:
        return self.read(self.rnn(self.embed(tokens))[0]), None


@pytest.mark.slow
def test_models_are_taken_as_they_are(generator: torch.Generator) -> None:
    tokens = torch.randint(9, (6, 4), generator=generator)
    model = Wrapped()
    trained = copy.deepcopy(model)
    train_to_loss(trained, ({"tokens": tokens}, tokens), 1.5, loss="cross_entropy", lr=0.5)
    found = rich_lazy(model, ({"tokens": tokens}, tokens), loss="cross_entropy", after=trained)
    assert found.loss_after < 1.51 < found.loss_before
    assert "loop" in found.method
    assert "sketched" in found.method  # 36 outputs per sample
    assert found.kernel_change > 0


def test_attention_blocks_are_vectorised_and_linearised(generator: torch.Generator) -> None:
    model = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), nn.Flatten(), nn.Linear(40, 2))
    x = torch.randn(6, 5, 8, generator=generator)
    found = rich_lazy(model, (x, x[:, 0, :2]), target_loss=0.5)
    assert "vmap" in found.method
    assert found.linearised_error > 0
    assert any(drift.pair.endswith("V -> O") for drift in found.balance)


def test_linearisation_error_falls_with_the_step(data: tuple[Tensor, Tensor]) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    step = {name: torch.randn_like(value) for name, value in start.items()}
    errors = [
        linearised_prediction(
            model, data[0].double(), start, {name: start[name] + size * step[name] for name in start}
        ).error
        for size in (1e-3, 1e-4)
    ]
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.05)  # a first-order expansion: error of order of the step


def test_training_stops_at_the_loss_or_says_why_not(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    run = train_to_loss(model, data, 0.3)
    assert run.ok
    assert 0.2 < run.loss <= 0.3
    assert train_to_loss(network(), data, 1e-9, max_steps=3).outcome is Outcome.OUT_OF_STEPS
    assert train_to_loss(network(), data, 1e-9, lr=1e6).outcome is Outcome.NON_FINITE


def test_the_checkpoint_nearest_in_loss_is_picked(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    checkpoints = [train_to_loss(copy.deepcopy(model), data, target).state for target in (0.6, 0.4, 0.2)]
    index, loss = pick_at_loss(model, checkpoints, data, 0.35)
    assert index == 1
    assert loss == pytest.approx(0.4, rel=0.1)


def test_networks_at_different_losses_are_not_compared(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    runs = {str(target): rich_lazy(model, data, target_loss=target) for target in (0.5, 0.2)}
    with pytest.raises(InvalidInput, match="compared at equal loss"):
        compare_regimes(runs)
    with pytest.raises(InvalidInput, match="at least two"):
        compare_regimes({})


def test_the_linearised_network_decides_and_the_other_measures_are_shown() -> None:
    assert verdict_of(2.0, 0.4, 0.1).label == "lazy"
    assert verdict_of(0.01, 0.01, 0.9).label == "rich"
    assert verdict_of(0.01, 0.1, 0.3).label == "in between"
    assert verdict_of(0.01, 0.1, float("nan")).label == "no word"
    assert "rich > 0.55" in verdict_of(2.0, 0.4, 0.1).sentence
    assert "features by 0.4" in verdict_of(2.0, 0.4, 0.1).sentence


@pytest.mark.parametrize("drop", [0.0, 0.03, 0.49, -1.0, float("nan")])
def test_no_word_is_given_below_half_of_the_loss(drop: float) -> None:
    assert verdict_of(0.01, 0.01, 0.01, drop).label == "no word"
    assert verdict_of(2.0, 0.4, 0.9, drop).label == "no word"


def test_the_word_comes_with_a_curve_over_the_loss(data: tuple[Tensor, Tensor]) -> None:
    found = rich_lazy(network(), data, target_loss=0.1, drops=(0.25, 0.6))
    assert [point.drop for point in found.curve] == sorted(point.drop for point in found.curve)
    assert found.curve[0].word == "no word"
    assert 0.25 <= found.curve[0].drop < 0.5
    assert found.curve[1].drop >= 0.6
    last = found.curve[-1]
    assert (last.loss, last.kernel_change, last.word) == (found.loss_after, found.kernel_change, found.verdict.label)
    assert last.linearised_error > found.curve[0].linearised_error
    assert "at loss" in repr(found)


def cold_network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def test_batch_statistics_that_warm_up_are_no_training(data: tuple[Tensor, Tensor]) -> None:
    model = cold_network()
    warm = copy.deepcopy(model).train()
    for _ in range(100):
        warm(3 * data[0] + 1)  # no weight moves
    found = rich_lazy(model, data, after=warm)
    assert found.verdict.label == "no word"
    assert found.kernel_change == found.feature_change == found.linearised_error == 0
    assert found.loss_before == found.loss_after


def test_batch_norm_is_linearised_with_its_statistics(data: tuple[Tensor, Tensor]) -> None:
    model = cold_network().double().train()
    x = data[0].double()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    step = {name: torch.randn_like(p) for name, p in model.named_parameters()}
    errors = []
    for size in (1e-3, 1e-4):
        end = {**start, **{name: start[name] + size * change for name, change in step.items()}}
        errors.append(linearised_prediction(model, x, start, end, batch_statistics=True).error)
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.05)
    assert all(torch.equal(value, start[name]) for name, value in model.state_dict().items())


def test_the_batch_statistics_of_a_state_make_evaluation_agree_with_training(data: tuple[Tensor, Tensor]) -> None:
    model = cold_network().double().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    own = own_statistics(model, model.state_dict(), data[0].double())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    inside = torch.func.functional_call(copy.deepcopy(model).eval(), own, (data[0].double(),))
    assert torch.allclose(inside, copy.deepcopy(model).train()(data[0].double()), atol=1e-12)


def test_norms_without_statistics_are_refused(data: tuple[Tensor, Tensor]) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 2))
    with pytest.raises(InvalidInput, match="no tangent kernel"):
        rich_lazy(model, data, after=copy.deepcopy(model))


def test_data_sorted_by_class_are_sampled_from_all_classes(generator: torch.Generator) -> None:
    labels = torch.arange(3).repeat_interleave(120)
    x = torch.randn(360, 6, generator=generator) + labels.unsqueeze(-1)
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    trained = copy.deepcopy(model)
    train_to_loss(trained, (x, labels), 0.5, loss="cross_entropy", lr=0.3)
    found = rich_lazy(model, (x, labels), loss="cross_entropy", after=trained, max_samples=40)
    assert found.n_samples == 40
    assert not math.isnan(found.label_alignment_before)
    assert not math.isnan(found.label_alignment_after)


def test_a_turn_of_the_outputs_is_seen() -> None:
    """2-2-20 at balance 100: the heavy output layer turns, which the traced kernel cannot see."""
    generator = seeded(3)
    x = torch.linalg.qr(torch.randn(8, 2, generator=generator, dtype=torch.float64))[0] * 8**0.5
    corr = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    w1, w2 = balanced_pair(100.0, 2, 2, 20, product=0.1 * corr.flip(0), generator=generator)
    flow = BalancedFlow(w1, w2, corr)
    models = []
    for time in (0.0, 1e4):
        model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 20, bias=False)).double()
        first, second = flow.factors(time)
        with torch.no_grad():
            model[0].weight.copy_(first)
            model[1].weight.copy_(second)
        models.append(model)
    found = rich_lazy(models[0], (x, x @ corr.mT), after=models[1])
    white = torch.eye(2, dtype=torch.float64)
    exact = float(ntk_distance(*flow.representations(0.0), *flow.representations(1e4), white))
    assert exact > 0.5
    assert found.kernel_distance == pytest.approx(exact, abs=0.15)  # twelve random pairs of outputs
    traced = [tangent_kernel(model, x).kernel for model in models]
    assert float(kernel_distance(*traced)) < 1e-3


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam"])
def test_networks_are_trained_by_the_optimiser_that_is_named(optimiser: str, data: tuple[Tensor, Tensor]) -> None:
    by_hand, by_name = network(), network()
    by_name.load_state_dict(by_hand.state_dict())
    build = {"sgd": {}, "momentum": {"momentum": 0.9}}.get(optimiser)
    rate = 0.01
    stepper = (
        torch.optim.Adam(by_hand.parameters(), lr=rate)
        if build is None
        else torch.optim.SGD(by_hand.parameters(), lr=rate, **build)
    )
    for _ in range(7):
        stepper.zero_grad()
        ((by_hand(data[0]) - data[1]).square().sum() / 48).backward()
        stepper.step()
    train_to_loss(by_name, data, 1e-9, optimiser=optimiser, lr=rate, max_steps=7)
    for a, b in zip(by_hand.parameters(), by_name.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-7)
        assert b.grad is None


def test_several_starts_give_a_band(data: tuple[Tensor, Tensor]) -> None:
    found = regime_curve([network(0.3, 0.3) for _ in range(3)], data, drops=(0.5, 0.8))
    assert [band.drop for band in found.bands] == [0.5, 0.8]
    assert all(len(band.points) == 3 for band in found.bands)
    low, middle, high = found.bands[-1].band("kernel_change")
    assert 0 < low < middle < high
    assert all(point.drop >= 0.5 for point in found.bands[0].points)
    assert found.bands[-1].word in ("rich", "starts disagree")
    assert "over 3 starts" in repr(found)
    assert found.rows()[0]["word"] == found.bands[0].word
    with pytest.raises(InvalidInput, match="drops must increase"):
        regime_curve([network(), network()], data, drops=(0.8, 0.5))
    with pytest.raises(InvalidInput, match="number of starts"):
        regime_curve([network()], data)


def test_bad_input_is_refused(data: tuple[Tensor, Tensor]) -> None:
    model = network()
    with pytest.raises(InvalidInput, match="exactly one of after="):
        rich_lazy(model, data)
    with pytest.raises(InvalidInput, match="exactly one of after="):
        rich_lazy(model, data, after=model, target_loss=0.1)
    with pytest.raises(InvalidInput, match="was not reached"):
        rich_lazy(model, data, target_loss=1e-9, max_steps=2)
    with pytest.raises(InvalidInput, match="needs shape"):
        rich_lazy(model, data, after=nn.Linear(6, 2))
    with pytest.raises(InvalidInput, match=r"pair \(inputs, targets\)"):
        rich_lazy(model, data[0], after=model)
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken[0].weight[0, 0] = torch.inf  # type: ignore[index]
    with pytest.raises(InvalidInput, match="must be finite"):
        rich_lazy(model, data, after=broken)
    with pytest.raises(InvalidInput, match="shape of the predictions"):
        rich_lazy(model, (data[0], data[1][:, :1]), after=model)


def test_the_stable_rate_sees_all_classes_and_the_statistics_of_the_data(generator: torch.Generator) -> None:
    x = torch.cat(
        [torch.zeros(250, 6), torch.randn(250, 6, generator=generator)]
    )  # sorted: the first half says nothing
    model = nn.Sequential(nn.Linear(6, 4, bias=False), nn.ReLU(), nn.Linear(4, 2, bias=False))
    mixed = x[torch.randperm(500, generator=generator)]
    assert stable_lr(model, x) == pytest.approx(stable_lr(model, mixed), rel=0.5)
    cold = cold_network().train()
    warm = copy.deepcopy(cold)
    for _ in range(200):
        warm(5 * x[250:])
    assert stable_lr(cold, 5 * x[250:]) == pytest.approx(stable_lr(warm, 5 * x[250:]), rel=1e-5)


class OneNumber(nn.Module):
    """A prediction without an axis of outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).squeeze(-1)


def test_one_number_per_sample_is_a_prediction_too(data: tuple[Tensor, Tensor]) -> None:
    found = rich_lazy(OneNumber(), (data[0], data[1][:, 1]), target_loss=0.15, lr=0.1)
    assert found.verdict.label != "no word"
    assert -1 <= found.label_alignment_after <= 1


def test_what_cannot_be_trained_here_is_refused_in_words(data: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(InvalidInput, match="needs a closure"):
        train_to_loss(network(), data, 0.1, optimiser=lambda p, lr: torch.optim.LBFGS(p, lr=lr), lr=0.1)
    with pytest.raises(InvalidInput, match="must make an optimiser"):
        train_to_loss(network(), data, 0.1, optimiser=lambda p, lr: None, lr=0.1)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidInput, match="must be a number with an optimiser of your own"):
        train_to_loss(network(), data, 0.1, optimiser=lambda p, lr: torch.optim.SGD(p, lr=lr))
    with pytest.raises(InvalidInput, match="kernel is not finite"):
        train_to_loss(network(), (data[0] * float("nan"), data[1]), 0.1)
    for alone in (network(), 3):
        with pytest.raises(InvalidInput, match="sequence of networks"):
            regime_curve(alone, data)


def test_targets_and_samples_that_cannot_be_judged_are_named(generator: torch.Generator) -> None:
    model = nn.Linear(4, 3)
    x, classes = torch.randn(8, 4, generator=generator), torch.arange(8) % 3
    for inputs, targets, words in (
        (x[:3], classes[:3], "data must hold at least 4 samples, .* got 3"),
        (x, classes[:5], "targets must be as many as the 8 samples"),
        (x, classes + 5, r"values in 0\.\.2; got values 5 to 7"),
        (x, -classes, r"values in 0\.\.2; got values -2 to 0"),
        (x.to("meta"), classes, "meta device"),
        (x, classes.to("meta"), "meta device"),
        (x / 0, classes, "the data hold numbers that are not finite"),
        (x, nn.functional.one_hot(classes, 3), "must be class numbers of shape"),
    ):
        with pytest.raises(InvalidInput, match=words):
            rich_lazy(model, (inputs, targets), after=model)
    with pytest.raises(InvalidInput, match=r"class numbers of shape \(8,\).*got float32 of shape \(8,\)"):
        rich_lazy(model, (x, classes.float()), after=model, loss="cross_entropy")


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_class_numbers_of_any_width_are_the_same_numbers(loss: str, generator: torch.Generator) -> None:
    model, x, classes = nn.Linear(4, 3), torch.randn(8, 4, generator=generator), torch.arange(8) % 3
    wide, narrow = (
        rich_lazy(model, (x, classes.to(kind)), after=model, loss=loss) for kind in (torch.int64, torch.int8)
    )
    assert narrow.loss_after == wide.loss_after


def test_targets_left_out_of_a_cross_entropy_are_no_classes(generator: torch.Generator) -> None:
    x, classes = torch.randn(8, 4, generator=generator), torch.arange(8) % 3
    classes[3] = -100
    model = nn.Linear(4, 3)
    found = rich_lazy(model, (x, classes), after=model)
    assert found.loss_after == pytest.approx(nn.functional.cross_entropy(model(x), classes).item())
