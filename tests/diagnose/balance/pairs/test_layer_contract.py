"""What every layer that ``set_balance`` knows promises. A new one is one more line in ``LAYERS``."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from separatrix.diagnose import Law, balance_profile, find_pairs, set_balance
from separatrix.diagnose.balance.pairs.layers import LAYERS as KNOWN, describe_layer


class Conv1D(nn.Module):
    """A stranger's layer with its weight (in, out), as GPT-2 stores it."""

    def __init__(self, n_out: int, n_in: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(n_in, n_out)), nn.Parameter(torch.empty(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


class Noted(nn.Linear):
    """A stranger's subclass of a known layer."""


SAMPLES, SEQUENCES, IMAGES, VOLUMES, TOKENS = (5, 4), (3, 4, 7), (2, 4, 6, 6), (2, 4, 4, 4, 4), (5, 3)
Make = Callable[[int, int], nn.Module]
LAYERS: dict[str, tuple[Make, tuple[int, ...]]] = {  # from (inputs, outputs), and the shape of an input with four units
    "linear": (nn.Linear, SAMPLES),
    "linear without bias": (lambda n_in, n_out: nn.Linear(n_in, n_out, bias=False), SAMPLES),
    "convolution of sequences": (lambda n_in, n_out: nn.Conv1d(n_in, n_out, 3, padding=1), SEQUENCES),
    "convolution of images": (lambda n_in, n_out: nn.Conv2d(n_in, n_out, 3, padding=1), IMAGES),
    "convolution of volumes": (lambda n_in, n_out: nn.Conv3d(n_in, n_out, 1), VOLUMES),
    "stranger: weight (in, out)": (lambda n_in, n_out: Conv1D(n_out, n_in), SAMPLES),
    "stranger: subclass": (Noted, SAMPLES),
}
FIRST_ONLY: dict[str, tuple[Make, tuple[int, ...]]] = {"embedding": (nn.Embedding, TOKENS)}


def model_of(name: str, between: nn.Module, generator: torch.Generator) -> tuple[nn.Module, Tensor]:
    """The layer on both sides of something, or in front of a linear layer, with random weights and inputs."""
    make, shape = (LAYERS | FIRST_ONLY)[name]
    second = make(6, 4) if name in LAYERS else nn.Linear(6, 4)
    model = nn.Sequential(make(4, 6), between, second).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
    if name in LAYERS:
        return model, torch.randn(shape, generator=generator, dtype=torch.float64)
    return model, torch.randint(4, shape, generator=generator)


def test_every_known_class_of_layer_is_entered() -> None:
    made = [make(4, 6) for make, _ in (LAYERS | FIRST_ONLY).values()]
    assert all(any(isinstance(layer, kind) for layer in made) for kind in KNOWN)


@pytest.mark.parametrize("name", LAYERS | FIRST_ONLY)
def test_a_layer_says_where_its_units_lie(name: str) -> None:
    module = (LAYERS | FIRST_ONLY)[name][0](4, 6)
    layer = describe_layer("part", module)
    assert layer is not None
    assert (layer.n_in, layer.n_out) == (4, 6)
    assert (module.weight.shape[layer.in_axis], module.weight.shape[layer.out_axis]) == (4, 6)
    assert layer.has_bias == (getattr(module, "bias", None) is not None)


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("balance", [0.0, 0.8, -0.8])
@pytest.mark.parametrize("name", LAYERS | FIRST_ONLY)
def test_set_balance_leaves_the_output_and_reaches_the_balance(
    name: str, balance: float, generator: torch.Generator
) -> None:
    model, inputs = model_of(name, nn.ReLU(), generator)
    before = model(inputs).detach()
    report = set_balance(model, balance, example_inputs=inputs)
    assert report.total_movement > 0
    assert torch.allclose(model(inputs), before, rtol=1e-11, atol=1e-11 * float(before.abs().max()))
    (pair,) = balance_profile(model).pairs
    assert (pair.balance, pair.spread) == (pytest.approx(balance, abs=1e-10), pytest.approx(0, abs=1e-10))


@pytest.mark.parametrize(
    ("between", "law"), [(nn.ReLU(), Law.DIAGONAL), (nn.Identity(), Law.FULL), (nn.Tanh(), Law.NOTHING)]
)
@pytest.mark.parametrize("name", LAYERS | FIRST_ONLY)
def test_the_law_is_that_of_what_lies_between(
    name: str, between: nn.Module, law: Law, generator: torch.Generator
) -> None:
    model, inputs = model_of(name, between, generator)
    for example in (None, inputs):
        assert [pair.law for pair in find_pairs(model, example_inputs=example).pairs] == [law]
