from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

import separatrix
from separatrix.diagnose.recording.protection import moved, untouched


class Meddler(nn.Module):
    """Changes everything it can reach in its forward, then does as it is told."""

    def __init__(self, end: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.layer, self.norm, self.head = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.register_buffer("count", torch.zeros(3))
        self.loose, self.calls, self.end = torch.ones(2), [1], end
        self.head.bias.requires_grad_(False)
        self.layer.weight.grad = torch.full((8, 6), 0.5)
        self.layer.weight.data[0, 0] = -0.0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.loose.mul_(2)
        self.calls.append(2)
        self.extra = "new"
        with torch.no_grad():
            self.layer.weight.mul_(1.001)
        self.head.bias.requires_grad_(True)
        self.layer.weight.grad.zero_()
        self.norm.eval()
        torch.rand(3), random.random(), numpy.random.rand()  # noqa: NPY002
        x += 1  # overwrites its input
        y = self.head(torch.relu(self.norm(self.layer(x))))
        self.end()
        return y


def photograph(model: nn.Module) -> dict[str, Any]:
    """Everything about a model that must not change, in a form that can be compared."""
    tensors = [*model.named_parameters(), *model.named_buffers(), ("loose", model.loose)]  # type: ignore[list-item]
    modules = dict(model.named_modules())
    return {
        "bits": {name: value.detach().contiguous().numpy().tobytes() for name, value in tensors},
        "versions": {name: value.data_ptr() for name, value in tensors},
        "requires_grad": {name: value.requires_grad for name, value in tensors},
        "grad": {
            name: None if value.grad is None else (id(value.grad), value.grad.tolist()) for name, value in tensors
        },
        "modes": {name: module.training for name, module in modules.items()},
        "hooks": {
            name: [list(module._forward_hooks), list(module._forward_pre_hooks), list(module._backward_hooks)]
            for name, module in modules.items()
        },
        "attributes": {name: list(vars(module)) for name, module in modules.items()},
        "calls": list(model.calls),  # type: ignore[arg-type]
        "torch": torch.get_rng_state().tolist(),
        "numpy": numpy.random.get_state()[1].tolist(),  # noqa: NPY002
        "grad mode": torch.is_grad_enabled(),
    }


def test_the_model_and_the_random_states_are_bit_identical_afterwards() -> None:
    model = Meddler()
    model.layer.register_forward_hook(lambda *_: None)
    x, y = torch.randn(12, 6), torch.randint(0, 3, (12,))
    given, before = x.clone(), photograph(model)
    separatrix.check(model, x, loss="cross_entropy", target=y, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    assert photograph(model) == before
    assert torch.equal(x, given)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_also_if_the_forward_raises_or_is_interrupted(error: type[BaseException]) -> None:
    def end() -> None:
        raise error("stop")

    model = Meddler(end)
    x = torch.randn(12, 6)
    before = photograph(model)
    if error is RuntimeError:
        assert separatrix.check(model, x).verdict == "failed"
    else:
        with pytest.raises(error):
            separatrix.check(model, x)
    assert photograph(model) == before


def test_a_forward_patched_on_the_instance_is_used_with_its_own_weights() -> None:
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
    plain = model.forward
    model.forward = lambda x: plain(x) * 2  # type: ignore[method-assign]
    found = separatrix.check(model, torch.randn(20, 5))
    assert found.find("detached") is None
    assert found.find("all_reached") is not None
    assert model(torch.zeros(1, 5)).shape == (1, 2)


def test_untouched_tensors_keep_their_versions_and_moved_ones_their_bits() -> None:
    model = nn.Linear(3, 2)
    version, bits = model.weight._version, model.weight.detach().clone()
    with untouched(model):
        pass
    assert model.weight._version == version
    with moved({model.weight: torch.zeros(2, 3)}):
        assert not bool(model.weight.any())
    assert torch.equal(model.weight, bits)


def test_the_random_state_of_python_is_put_back() -> None:
    before = random.getstate()  # by itself: the checks of the tests draw from it too
    with untouched(nn.Linear(2, 2)):
        random.random()
        inside = random.getstate()
    assert random.getstate() == before != inside


def test_nan_weights_are_restored_as_they_were() -> None:
    model = nn.Linear(3, 2)
    model.weight.data[0, 0] = torch.nan
    with untouched(model):
        model.weight.data.zero_()
    assert bool(model.weight[0, 0].isnan())
    assert bool((model.weight.flatten()[1:] != 0).all())


@pytest.mark.parametrize("cached_before", [False, True])
def test_moved_weights_are_seen_under_autocast_and_forgotten_after(cached_before: bool) -> None:
    layer, x = nn.Linear(3, 2, bias=False), torch.ones(1, 3)
    with torch.autocast("cpu", torch.bfloat16):
        own = layer(x) if cached_before else None
        with moved({layer.weight: torch.zeros(2, 3)}):
            assert not layer(x).any()
        assert own is None or torch.equal(layer(x), own)
        assert layer(x).any()
