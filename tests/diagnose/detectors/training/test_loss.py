from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES
from check_recipes.networks import mlp

_ = (faults, healthy)


def test_a_small_loss_that_grows_by_a_factor_is_no_accusation() -> None:
    """Near zero every ratio is large; the absolute part of the rule keeps quiet."""
    torch.manual_seed(0)
    x = torch.randn(32, 6)
    model = nn.Sequential(nn.Linear(6, 2))
    y = (x[:, 0] > 0).long()
    model[0].weight.data.zero_()
    model[0].weight.data[1, 0], model[0].weight.data[0, 0] = 60.0, -60.0
    model[0].bias.data.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    found = separatrix.check(model, x, loss="cross_entropy", target=y, optimizer=optimizer)
    assert found.find("learning_rate").severity == "ok"  # type: ignore[union-attr]


@pytest.mark.parametrize(("classes", "floor"), [(6, 1.0435), (40, 2.7306)])
def test_the_floor_of_a_doubled_softmax_is_exact(classes: int, floor: float) -> None:
    model = nn.Sequential(mlp([6, 20, classes]), nn.Softmax(-1))
    x, y = torch.randn(32, 6), torch.randint(0, classes, (32,))
    found = separatrix.check(model, x, loss="cross_entropy", target=y).find("output_loss_mismatch")
    assert found is not None
    certain = torch.eye(classes)[0]  # the best that probabilities can do
    assert found.value == pytest.approx(float(-certain.log_softmax(-1)[0]), abs=1e-6)
    assert found.value == pytest.approx(floor, abs=1e-3)
    assert math.log(classes) > floor


@pytest.mark.parametrize(
    "loss",
    [nn.CrossEntropyLoss(), nn.CrossEntropyLoss(reduction="sum"), nn.CrossEntropyLoss(label_smoothing=0.1),
     lambda f, y: nn.functional.nll_loss(f.log_softmax(-1), y)],
)  # fmt: skip
def test_softmax_losses_are_known_by_what_they_do(loss: object) -> None:
    found = separatrix.check(mlp([6, 20, 5]), torch.randn(32, 6), loss=loss, target=torch.randint(0, 5, (32,)))  # type: ignore[arg-type]
    assert found.find("output_loss_mismatch").meaning == "output fits the loss (softmax)"  # type: ignore[union-attr]
    assert abs(found.measures["initial_loss"]) < 0.5


def test_standardised_inputs_are_not_accused() -> None:
    case = RECIPES["mlp_relu_none"].case(0)
    assert scores.published_rules(case)["umlaut"]  # outside [-1, 1], as every standardised data set
    assert scores.examine(case).find("unscaled_input") is None


def test_a_gradient_that_is_not_finite_says_nothing_of_the_rate() -> None:
    class RootAtZero(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sqrt(self.layer(x).square())

    model = RootAtZero()
    x = torch.cat([torch.zeros(4, 4), torch.randn(4, 4, generator=torch.Generator().manual_seed(0))])
    found = separatrix.check(
        model,
        x,
        loss=nn.functional.mse_loss,
        target=torch.ones(8, 1),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    )
    assert found.find("learning_rate") is None
    (skipped,) = [item for item in found.skipped if item.id == "learning_rate"]
    assert skipped.reason == "the gradient is not finite"
    assert not any("LinAlgError" in item.reason for item in found.skipped)
