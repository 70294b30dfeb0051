from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn, optim

from separatrix.diagnose import Keeps, optimiser_law
from separatrix.diagnose.optimisers import changed_from_outside, learning_rates, torch_class


def parameters() -> list[nn.Parameter]:
    return [nn.Parameter(torch.ones(2, 2))]


class Plain(optim.AdamW):
    """Nothing of its own but a constructor."""

    def __init__(self, held: Any, rate: float) -> None:
        super().__init__(held, lr=rate)
        self.rate = rate


class Renamed(optim.SGD):
    @functools.wraps(optim.SGD.step)
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        return super().step(closure)


def test_a_subclass_without_a_step_of_its_own_takes_that_of_torch() -> None:
    optimiser = Plain(parameters(), 0.1)
    optim.lr_scheduler.StepLR(optimiser, 3)
    assert torch_class(optimiser) is optim.AdamW
    assert not changed_from_outside(optimiser)


def test_a_wrapper_is_not_taken_for_what_it_wraps() -> None:
    optimiser = Renamed(parameters(), lr=0.1)
    assert torch_class(optimiser) is None
    assert optimiser_law(optimiser).keeps is Keeps.UNKNOWN


@pytest.mark.slow
def test_a_compiled_step_is_the_same_step() -> None:
    optimiser = optim.SGD(parameters(), lr=0.1)
    optimiser.step = torch.compile(optimiser.step)  # type: ignore[method-assign]
    assert not changed_from_outside(optimiser)


def test_hooks_that_only_count_steps_change_none() -> None:
    from separatrix.nn import ExpRNN  # has every step of any optimiser counted

    assert ExpRNN(2, 3) is not None
    optimiser = optim.SGD(parameters(), lr=0.1)
    assert not changed_from_outside(optimiser)
    optimiser.register_step_post_hook(lambda *_: None)
    assert changed_from_outside(optimiser)


@pytest.mark.parametrize("step", [functools.partial(print), lambda closure=None: None], ids=["partial", "function"])
def test_another_step_on_the_object_is_seen(step: Any) -> None:
    optimiser = optim.SGD(parameters(), lr=0.1)
    optimiser.step = step  # type: ignore[method-assign]
    assert changed_from_outside(optimiser)


def test_rates_are_numbers_whatever_they_come_in() -> None:
    groups = [{"params": parameters(), "lr": rate} for rate in (torch.tensor(0.5, requires_grad=True), 0.25, 0.5)]
    assert learning_rates(optim.SGD(groups, lr=1.0)) == [0.25, 0.5]
