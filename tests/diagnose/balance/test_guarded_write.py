from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.diagnose.balance.guarded_write import write_guarded
from separatrix.diagnose.model_call import prediction


def network() -> tuple[nn.Module, Tensor]:
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), torch.randn(5, 4, generator=seeded(0))


def rescaled(model: nn.Module, factor: float, back: float) -> dict[str, Tensor]:
    values = {name: value.detach().double() for name, value in model.named_parameters()}
    scale = {"0.weight": factor, "0.bias": factor, "2.weight": back}
    return {name: scale[name] * values[name] for name in scale}


def test_an_exact_change_is_written() -> None:
    model, x = network()
    assert write_guarded(model, rescaled(model, 3.0, 1 / 3.0), [x], prediction) < 1e-6
    assert float(model[0].weight.detach().abs().max()) > 1


@pytest.mark.parametrize("error", [1e-5, 1e-3, 0.1])
def test_a_change_beyond_rounding_is_not(error: float) -> None:
    model, x = network()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InvalidInput, match="outputs would change"):
        write_guarded(model, rescaled(model, 3.0, (1 + error) / 3.0), [x], prediction)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_part_that_is_small_in_the_output_is_not_excused() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()[0]

        def forward(self, x: Any) -> Any:
            return 1e-3 * self.net(x), 1e3 + 0 * x  # each output is held to its own size

    model, x = Small(), network()[1]
    changed = {f"net.{name}": value for name, value in rescaled(model.net, 3.0, 1.001 / 3.0).items()}
    with pytest.raises(InvalidInput, match="outputs would change"):
        write_guarded(model, changed, [x], prediction)


class Kept(nn.Module):
    """Keeps a second copy of a weight, which a call with other parameters does not reach."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.alias = [self.second.weight.detach()]  # the same memory, hidden from torch

    def forward(self, x: Any) -> Any:
        return (x @ self.first.weight.mT).relu() @ self.second.weight.mT + x @ self.alias[0].mT


def test_what_only_the_written_model_shows_is_undone() -> None:
    model, x = Kept(), network()[1]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    changed = {"first.weight": 2 * model.first.weight.detach(), "second.weight": model.second.weight.detach() / 2}
    with pytest.raises(InvalidInput, match="outputs would change"):
        write_guarded(model, changed, [x], prediction)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_models_that_are_never_the_same_twice_are_refused() -> None:
    class Clock(nn.Module):
        calls: list[int]

        def __init__(self) -> None:
            super().__init__()
            self.net, self.calls = network()[0], []

        def forward(self, x: Any) -> Any:
            self.calls.append(1)
            return self.net(x) + len(self.calls)

    model = Clock()
    with pytest.raises(InvalidInput, match="differ between two equal calls"):
        write_guarded(model, {"net.0.weight": model.net[0].weight.detach()}, [network()[1]], prediction)


def test_a_change_is_judged_by_the_new_weights_under_autocast_too() -> None:
    model, x = network()
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(InvalidInput, match="outputs would change"):
        write_guarded(model, rescaled(model, 3.0, 1.0), [x], prediction)
