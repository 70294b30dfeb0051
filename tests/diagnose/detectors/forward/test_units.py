"""Units: equal rows, dead units on few values, functional rectifiers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES
from check_recipes.networks import mlp
from separatrix.diagnose.detectors.forward.units import _twins

_ = (faults, healthy)


@pytest.mark.parametrize("name", ["residual_zero_last", "lora"])
def test_equal_rows_alone_are_no_symmetry(name: str) -> None:
    case = RECIPES[name].case(0)
    rows = [value for value in case.model.parameters() if value.ndim == 2 and bool((value == value[0]).all())]
    assert rows  # the naive measure accuses
    assert scores.examine(case).find("symmetric_units") is None


def test_rows_by_thousands_are_told_apart_and_few_twins_are_found(generator: torch.Generator) -> None:
    weight = torch.randn(20_000, 12, generator=generator)
    gradient = torch.randn(20_000, 12, generator=generator)
    assert _twins(weight, gradient, 0) < 1e-3
    weight[:1000], gradient[:1000] = weight[1000:2000], gradient[1000:2000]
    assert _twins(weight, gradient, 0) == pytest.approx(0.1, abs=1e-3)
    assert _twins(weight, torch.randn(20_000, 12, generator=generator), 0) < 1e-3


def test_units_are_not_called_dead_on_few_values() -> None:
    """Of 3 samples half of the units are off for all by chance."""
    torch.manual_seed(0)
    model, x = mlp([20, 64, 5]), torch.randn(3, 20)
    off = (torch.relu(model[0](x)) <= 0).all(0).float().mean()
    assert float(off) > 0.05
    assert separatrix.check(model, x).find("dead_units") is None


class Rectifier(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.a, self.b, self.how = nn.Linear(6, 20), nn.Linear(20, 3), how
        nn.init.constant_(self.a.bias, -30.0)

    def forward(self, x: Tensor) -> Tensor:
        h = self.a(x)
        cut = {
            "function": lambda: torch.relu(h),
            "in place": lambda: h.relu_(),
            "clamp": lambda: h.clamp(min=0),
            "mask": lambda: h * (h > 0),
            "where": lambda: torch.where(h > 0, h, 0.0),
            "maximum": lambda: torch.maximum(h, torch.zeros_like(h)),
            "six": lambda: nn.functional.relu6(h),
        }[self.how]()
        return self.b(cut)


@pytest.mark.parametrize("how", ["function", "in place", "clamp", "mask", "where", "maximum", "six"])
def test_a_rectifier_is_one_however_it_is_written(how: str) -> None:
    found = separatrix.check(Rectifier(how), torch.randn(32, 6)).find("dead_units")
    assert found is not None
    assert found.severity == "fault"
    assert found.value == 1.0
