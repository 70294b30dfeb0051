"""The step that a diagnosis foresees is the one the optimiser then takes."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn, optim
from torch.optim.optimizer import register_optimizer_step_pre_hook

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


def _clipped(optimiser: optim.Optimizer) -> None:
    for group in optimiser.param_groups:
        nn.utils.clip_grad_norm_(group["params"], 0.01)


class Clipped(optim.SGD):
    """Descent that hides a clip behind the name of the step it wraps."""

    @functools.wraps(optim.SGD.step)
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        _clipped(self)
        super().step(closure)


class Shared(optim.SGD):
    """Descent that looks at all gradients before it takes any."""

    def _init_group(self, group: Any, params: Any, grads: Any, buffers: Any) -> bool:
        sparse = bool(super()._init_group(group, params, grads, buffers))
        total = torch.stack([gradient.norm() for gradient in grads]).norm()
        grads[:] = [gradient / total for gradient in grads]
        return sparse


def _wrapped_on_the_object(parameters: list[nn.Parameter]) -> optim.Optimizer:
    optimiser = optim.SGD(parameters, lr=0.1)
    step = optimiser.step

    @functools.wraps(step)
    def clipped(closure: Any = None) -> Any:
        _clipped(optimiser)
        return step()

    optimiser.step = clipped  # type: ignore[method-assign]
    return optimiser


def _small(parameter: Tensor) -> None:
    assert parameter.grad is not None
    parameter.grad.clamp_(-1e-3, 1e-3)


def _hooked_gradients(parameters: list[nn.Parameter]) -> optim.Optimizer:
    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(_small)
    return optim.SGD(parameters, lr=0.1)


CHANGED: dict[str, Make] = {
    "a wrapper with the name of torch's step": lambda p: Clipped(p, lr=0.1),
    "a wrapper put on the object": _wrapped_on_the_object,
    "an inner method of the subclass": lambda p: Shared(p, lr=0.1),
    "hooks on the gradients": _hooked_gradients,
    "a step that torch refuses on leaves": lambda p: optim.SGD(p, lr=0.1, differentiable=True),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_step_that_something_changes_is_not_known(name: str, generator: torch.Generator) -> None:
    parameter = nn.Parameter(torch.randn(4, 3, generator=generator))
    optimiser = CHANGED[name]([parameter])
    gradient = torch.randn(4, 3, generator=generator)
    assert after_one_step(optimiser, optimiser.param_groups[0], parameter, gradient) is None


def test_a_step_that_hooks_of_the_process_change_is_not_known() -> None:
    parameter = nn.Parameter(torch.ones(3))
    optimiser = optim.SGD([parameter], lr=0.1)
    handle = register_optimizer_step_pre_hook(lambda *_: None)
    try:
        assert after_one_step(optimiser, optimiser.param_groups[0], parameter, torch.ones(3)) is None
    finally:
        handle.remove()
    assert after_one_step(optimiser, optimiser.param_groups[0], parameter, torch.ones(3)) is not None


class Counted(optim.SGD):
    """A subclass with attributes of its own that nobody else can fill."""

    def __init__(self, parameters: Any, lr: float) -> None:
        super().__init__(parameters, lr)
        self.revived: list[int] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.revived.append(1)


def test_no_code_of_a_strangers_class_is_run_and_what_its_groups_hold_is_not_copied() -> None:
    parameter = nn.Parameter(torch.ones(3))
    optimiser = Counted([parameter], lr=0.1)
    optimiser.param_groups[0]["lock"] = threading.Lock()  # cannot be copied
    foreseen = after_one_step(optimiser, optimiser.param_groups[0], parameter, torch.ones(3))
    assert foreseen is not None
    assert torch.allclose(foreseen, torch.full((3,), 0.9))
    assert optimiser.revived == []


class Without(optim.Optimizer):
    """An optimiser with other settings than a rate."""

    def __init__(self, parameters: Any, **settings: Any) -> None:
        super().__init__(parameters, settings)

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        raise AssertionError("a stranger's step is not called")


@pytest.mark.parametrize("settings", [{"pace": 0.1}, {"lr": None}, {"lr": torch.ones(2)}], ids=["no", "None", "two"])
def test_optimisers_without_one_rate_do_not_end_a_diagnosis(settings: dict[str, Any]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    found = separatrix.check(
        model,
        torch.randn(6, 3),
        loss="mse",
        target=torch.randn(6, 2),
        optimizer=Without(model.parameters(), **settings),
    )
    assert any(item.id == "learning_rate" and "not known" in item.reason for item in found.skipped)
    assert "Without" in str(found)


class Weighted(nn.Module):
    """A loss with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, found: Tensor, wanted: Tensor) -> Tensor:
        return self.scale * (found - wanted).square().mean()


def _foreseen_and_true(
    model: nn.Module, x: Tensor, y: Tensor, optimiser: optim.Optimizer, loss: Any, rounded: bool = False
) -> tuple[float, float]:
    """The change of the loss that a diagnosis foresees, and the one that then comes."""
    with torch.autocast("cpu", torch.bfloat16) if rounded else contextlib.nullcontext():
        found = separatrix.check(model, x, loss=loss, target=y, optimizer=optimiser).measures["learning_rate"]
        before = loss(model(x), y)
    before.backward()
    optimiser.step()
    with torch.autocast("cpu", torch.bfloat16) if rounded else contextlib.nullcontext():
        return found, float((loss(model(x), y) - before).detach())


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # of torch's own step
@pytest.mark.parametrize("kind", ["a loss with weights", "autocast", "sparse", "sparse Adagrad"])
def test_the_loss_that_is_foreseen_is_the_one_that_comes(kind: str, generator: torch.Generator) -> None:
    x, y = torch.randn(16, 5, generator=generator), torch.randn(16, 3, generator=generator)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
    loss = Weighted()
    if kind.startswith("sparse"):
        model = nn.Sequential(nn.Embedding(7, 5, sparse=True), nn.Flatten(), nn.Linear(20, 3))
        x = torch.randint(7, (16, 4), generator=generator)
    held = [*model.parameters(), *(loss.parameters() if kind == "a loss with weights" else ())]
    optimiser = (optim.Adagrad if kind == "sparse Adagrad" else optim.SGD)(held, lr=0.1)
    foreseen, true = _foreseen_and_true(model, x, y, optimiser, loss, kind == "autocast")
    assert true != 0
    assert abs(foreseen - true) < 1e-5 * max(1, abs(true))  # one batch, the same arithmetic


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
