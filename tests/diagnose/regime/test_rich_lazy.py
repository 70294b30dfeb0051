from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, Outcome
from separatrix.diagnose import (
    compare_regimes,
    linearised_prediction,
    pick_at_loss,
    rich_lazy,
    set_balance,
    train_to_loss,
)
from separatrix.diagnose.regime.verdict import verdict_of


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
    assert found.verdict.label == "lazy"
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


def test_verdicts_need_two_of_three_measures() -> None:
    assert verdict_of(0.01, 0.01, 0.9).label == "lazy"
    assert verdict_of(2.0, 0.4, 0.1).label == "rich"
    assert verdict_of(0.01, 0.1, 0.9).label == "in between"
    assert verdict_of(0.01, float("nan"), 0.01).label == "lazy"
    assert "rich > 0.5" in verdict_of(2.0, 0.4, 0.1).sentence


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
