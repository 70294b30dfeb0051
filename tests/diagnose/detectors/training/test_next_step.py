"""The step that a diagnosis foresees is the one the optimiser then takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn, optim

import separatrix
from separatrix.diagnose.detectors.training.next_step import after_one_step

Make = Callable[[list[nn.Parameter]], optim.Optimizer]

MAKERS: dict[str, Make] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "Nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "dampening": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "weight decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.5),
    "ascent": lambda p: optim.SGD(p, lr=0.1, maximize=True),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "Adam, L2": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.5),
    "AMSGrad": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.5),
    "a rate that is a tensor": lambda p: optim.AdamW(p, lr=torch.tensor(0.1), foreach=False),
    "NAdam": lambda p: optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: optim.RAdam(p, lr=0.1),
    "Adamax": lambda p: optim.Adamax(p, lr=0.1),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.1, centered=True, momentum=0.5),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    "Adadelta": lambda p: optim.Adadelta(p, lr=0.1),
    "Rprop": lambda p: optim.Rprop(p, lr=0.1),
    "ASGD": lambda p: optim.ASGD(p, lr=0.1),
    "Adafactor": lambda p: optim.Adafactor(p, lr=0.1),
}
if hasattr(optim, "Muon"):  # since torch 2.9
    MAKERS["Muon"] = lambda p: optim.Muon(p, lr=0.1)


@pytest.mark.parametrize("warm", [0, 3])
@pytest.mark.parametrize("name", MAKERS)
def test_the_step_is_the_one_that_comes(name: str, warm: int, generator: torch.Generator) -> None:
    parameter = nn.Parameter(torch.randn(4, 3, generator=generator))
    optimiser = MAKERS[name]([parameter])
    optim.lr_scheduler.StepLR(optimiser, 100)  # its wrapper around the step must neither be called nor hide it
    for _ in range(warm):
        parameter.grad = torch.randn(4, 3, generator=generator)
        optimiser.step()
    gradient = torch.randn(4, 3, generator=generator)
    before, state = parameter.detach().clone(), _copied(optimiser.state[parameter])
    foreseen = after_one_step(optimiser, optimiser.param_groups[0], parameter, gradient)
    assert foreseen is not None
    assert torch.equal(parameter, before)  # nothing of the optimiser's own is touched
    assert _equal(_copied(optimiser.state[parameter]), state)
    parameter.grad = gradient
    optimiser.step()
    assert torch.allclose(foreseen, parameter, atol=1e-6)


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in state.items()}


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        bool((torch.as_tensor(one[k]) == torch.as_tensor(other[k])).all()) for k in one if one[k] is not None
    )


class Signs(optim.SGD):
    """A step of its own."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        raise AssertionError("a stranger's step is not called: nobody knows what else it does")


def test_steps_that_nobody_knows_are_not_guessed() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    hooked = optim.SGD(model.parameters(), lr=0.1)
    hooked.register_step_pre_hook(lambda *_: pytest.fail("a hook was called"))
    x, y = torch.randn(6, 3), torch.randn(6, 2)
    for optimiser in (Signs(model.parameters(), lr=0.1), hooked, optim.LBFGS(model.parameters())):
        found = separatrix.check(model, x, loss=nn.functional.mse_loss, target=y, optimizer=optimiser)
        assert found.find("learning_rate") is None
        assert any(item.id == "learning_rate" and "not known" in item.reason for item in found.skipped)


def test_an_ascent_is_seen_to_raise_the_loss() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    x, y = torch.randn(16, 3), torch.randn(16, 2)
    raised = separatrix.check(
        model, x, loss=nn.functional.mse_loss, target=y, optimizer=optim.SGD(model.parameters(), lr=0.5, maximize=True)
    )
    finding = raised.find("learning_rate")
    assert finding is not None
    assert finding.severity in ("warning", "fault")
