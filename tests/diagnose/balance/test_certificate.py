from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations

import attention_forms as forms
from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.diagnose import Law, balance_profile, set_balance

KQ, VO = "attention head 0 K -> Q", "attention head 0 V -> O"


def tokens(seed: int = 1, n_tokens: int = 5) -> Tensor:
    return torch.randn(3, n_tokens, forms.DIM, generator=seeded(seed))


def bits(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def unchanged(model: nn.Module, before: dict[str, Tensor]) -> bool:
    now = model.state_dict()
    return list(now) == list(before) and all(torch.equal(value, before[name]) for name, value in now.items())


# What the reviewers' models lost (largest relative change of the outputs) when balances were written by names alone.
CHANGED = {
    "Llama style": (forms.LlamaStyle, (tokens(), forms.frequencies(5)), {KQ: Law.ROTATION_PAIRS, VO: Law.FULL}),
    "interleaved rotary": (forms.InterleavedRotary, tokens(), {KQ: Law.ROTATION_PAIRS, VO: Law.FULL}),
    "half rotary without the name": (forms.HalfRotaryUnnamed, tokens(), {KQ: Law.ROTATION_PAIRS, VO: Law.FULL}),
    "cosine": (forms.Cosine, tokens(), {KQ: Law.NOTHING, VO: Law.FULL}),
    "q_layernorm": (forms.NormOtherName, tokens(), {KQ: Law.NOTHING, VO: Law.FULL}),
    "qn": (lambda: forms.NormOtherName("qn"), tokens(), {KQ: Law.NOTHING, VO: Law.FULL}),
    "linear attention": (forms.LinearAttention, tokens(), {KQ: Law.NOTHING, VO: Law.FULL}),
    "tanh on values": (forms.TanhValues, tokens(), {KQ: Law.FULL, VO: Law.NOTHING}),
    "clipped queries": (forms.ClippedQueries, tokens(), {KQ: Law.NOTHING, VO: Law.FULL}),
    "norm before the output": (forms.NormedOutput, tokens(), {KQ: Law.FULL, VO: Law.NOTHING}),
    "talking heads": (forms.TalkingHeads, tokens(), {KQ: Law.FULL, VO: Law.NOTHING}),
    "queries read twice": (forms.ResidualQueries, tokens(), {KQ: Law.NOTHING, VO: Law.FULL}),
}
KEPT = {
    "plain": forms.Attention,
    "grouped queries": lambda: forms.Attention(n_groups=1),
    "soft cap": forms.SoftCap,
    "ALiBi": forms.Alibi,
    "sigmoid": forms.Sigmoid,
    "causal": forms.Causal,
    "fused kernel": forms.Fused,
}


def call(model: nn.Module, inputs: Any) -> Tensor:
    with torch.no_grad():
        result = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    return result[0] if isinstance(result, tuple) else result


def change(model: nn.Module, original: nn.Module, inputs: Any) -> float:
    before = call(original.eval(), inputs)
    return float((call(model.eval(), inputs) - before).abs().max() / before.abs().max())


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize(
    ("with_inputs", "balance"),
    [
        (False, 0.0),
        (True, -0.7),
        *(pytest.param(*both, marks=pytest.mark.slow) for both in ((False, -0.7), (True, 0.0))),
    ],
)
@pytest.mark.parametrize("name", CHANGED)
def test_no_form_of_attention_is_changed(name: str, with_inputs: bool, balance: float) -> None:
    build, inputs, _ = CHANGED[name]
    model = build()
    original = copy.deepcopy(model)
    given = {"example_inputs": inputs} if with_inputs else {}
    if isinstance(inputs, tuple) and not with_inputs:  # a model of two arguments, for which no input is made up
        with pytest.raises(InvalidInput, match="pass example_inputs="):
            set_balance(model, balance, on_refusal="leave")
        assert unchanged(model, bits(original))
    else:
        set_balance(model, balance, on_refusal="leave", **given)
    assert change(model, original, inputs) < 1e-5  # rounding in float32


@pytest.mark.parametrize("name", CHANGED)
def test_a_profile_states_the_law_that_the_model_has(name: str) -> None:
    build, inputs, laws = CHANGED[name]
    profile = balance_profile(build(), example_inputs=inputs)
    assert {pair: profile[pair].law for pair in laws} == laws
    for pair, law in laws.items():
        assert (profile[pair].law_residual < 1e-4) == (law is not Law.NOTHING)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("balance", [-0.7, pytest.param(0.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", KEPT)
def test_attention_whose_symmetry_is_whole_is_still_set(name: str, balance: float) -> None:
    model = KEPT[name]()
    original = copy.deepcopy(model)
    report = set_balance(model, balance)  # inputs are made up: forward takes one argument
    assert report.total_movement > 0
    assert change(model, original, tokens(3, 7)) < 1e-5
    assert all(pair.law is Law.FULL and abs(pair.balance - balance) < 1e-5 for pair in balance_profile(model).pairs)


def test_one_head_is_not_probed_with_units_in_the_place_of_tokens() -> None:
    """With one head, attention also runs on a matrix, and then takes units for tokens."""
    model = forms.Attention(1)
    model.num_heads = model.num_key_value_heads = 1
    model.head_dim = forms.DIM
    model.k_proj, model.v_proj = (nn.Linear(forms.DIM, forms.DIM) for _ in range(2))
    model.attend = lambda q, k, v: model.merge(model.logits(q, k).softmax(-1) @ v)  # type: ignore[method-assign]
    assert {pair.law for pair in balance_profile(model).pairs} == {Law.FULL}


def test_rotations_are_found_by_running_and_set_block_by_block() -> None:
    model = forms.InterleavedRotary()
    set_balance(model, 0.3)
    pair = balance_profile(model)[KQ]
    assert (pair.pair.rotation, pair.law) == ("interleaved", Law.ROTATION_PAIRS)
    assert torch.allclose(pair.quantity, torch.full_like(pair.quantity, 0.6), atol=1e-5)


@pytest.mark.parametrize("build", [forms.LlamaStyle, forms.LlamaOptional])
def test_inputs_are_demanded_where_they_cannot_be_made_up(build: Callable[[], nn.Module]) -> None:
    model = build()
    before = bits(model)
    with pytest.raises(InvalidInput, match=r"nothing is written unchecked: .*forward\(x, freqs_cis.*example_inputs="):
        set_balance(model, 0.3)
    assert unchanged(model, before)
    pair = balance_profile(model)[KQ]
    assert pair.law is Law.UNCHECKED
    assert "suggest the full matrix law" in pair.note
    assert "not checked" in repr(balance_profile(model))


class Adapted(nn.Linear):
    """A linear layer with a low-rank adapter that starts at zero."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_in, n_out)
        self.down, self.up = nn.Parameter(torch.randn(2, n_in)), nn.Parameter(torch.zeros(n_out, 2))

    def forward(self, x: Any) -> Any:
        return super().forward(x) + x @ self.down.mT @ self.up.mT


class Rounded(nn.Linear):
    """Weights on a grid, gradients straight through."""

    def forward(self, x: Any) -> Any:
        grid = (self.weight * 16).round() / 16
        return functional.linear(x, self.weight + (grid - self.weight).detach(), self.bias)


class Normalised(nn.Linear):
    def forward(self, x: Any) -> Any:
        return functional.linear(x, functional.normalize(self.weight, dim=1), self.bias)


class ReLU(nn.Module):
    """Another function under a known name."""

    def forward(self, x: Any) -> Any:
        return functional.softplus(x)


class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        raise NotImplementedError("no gradient here")


class Opaque(nn.Module):
    def forward(self, x: Any) -> Any:
        return NoGradient.apply(x) if isinstance(x, Tensor) else x


def sequence(first: nn.Module, between: nn.Module, second: nn.Module) -> nn.Module:
    return nn.Sequential(first, between, second)


def hooked() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    model[0].register_forward_hook(lambda module, args, result: result.tanh())
    return model


def shared_memory() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    model[2].weight = nn.Parameter(model[0].weight.data)
    return model


def shared_module() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), layer)


REFUSED = {
    "adapter": lambda: sequence(Adapted(4, 6), nn.ReLU(), nn.Linear(6, 3)),
    "rounded weights": lambda: sequence(Rounded(4, 6), nn.ReLU(), nn.Linear(6, 3)),
    "normalised weights": lambda: sequence(Normalised(4, 6), nn.ReLU(), nn.Linear(6, 3)),
    "another function of that name": lambda: sequence(nn.Linear(4, 6), ReLU(), nn.Linear(6, 3)),
    "hook": hooked,
    "shared memory": shared_memory,
    "shared module": shared_module,
    "weight norm": lambda: sequence(parametrizations.weight_norm(nn.Linear(4, 6)), nn.ReLU(), nn.Linear(6, 3)),
    "old weight norm": lambda: sequence(nn.utils.weight_norm(nn.Linear(4, 6)), nn.ReLU(), nn.Linear(6, 3)),
    "old spectral norm": lambda: sequence(nn.utils.spectral_norm(nn.Linear(4, 6)), nn.ReLU(), nn.Linear(6, 3)),
    "no gradient": lambda: sequence(nn.Linear(4, 6), Opaque(), nn.Linear(6, 3)),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_is_not_certified_is_refused_and_leaves_every_bit(name: str) -> None:
    model = REFUSED[name]()
    before, attributes = bits(model), {part: dict(vars(part)) for part in model.modules()}
    random = torch.get_rng_state()
    x = torch.randn(5, 4, generator=seeded(2))
    for given in ({}, {"example_inputs": x}):
        with pytest.raises(InvalidInput):
            set_balance(model, 0.5, **given)
        assert unchanged(model, before)
        assert all(vars(part) == was for part, was in attributes.items())
        assert torch.equal(torch.get_rng_state(), random)
        assert all(pair.law in (Law.NOTHING, Law.UNCHECKED) for pair in balance_profile(model, **given).pairs)


class Noisy(nn.Module):
    """Draws random numbers, counts its calls, keeps a buffer up to date, even in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)
        self.register_buffer("mean", torch.zeros(4))
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls = self.calls + 1
        self.mean += x.mean(0)
        return self.second(functional.relu(self.first(x + torch.randn_like(x))))


def test_probing_changes_neither_buffers_nor_attributes_nor_random_streams() -> None:
    model = Noisy().train()
    random = torch.get_rng_state()
    report = set_balance(model, 0.5, example_inputs=torch.randn(5, 4, generator=seeded(2)))
    assert report.balance["first -> second"][1] == pytest.approx(0.5, abs=1e-5)
    assert (model.calls, model.mean.abs().sum(), model.training) == (0, 0, True)
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_models_of_every_precision_are_certified_in_it(dtype: torch.dtype) -> None:
    good, bad = forms.Attention().to(dtype), forms.Cosine().to(dtype)
    original, before = copy.deepcopy(good), bits(bad)
    set_balance(good, 0.3)
    assert change(good, original, tokens().to(dtype)) < 8 * torch.finfo(dtype).eps
    with pytest.raises(InvalidInput, match="does not have the symmetry"):
        set_balance(bad, 0.3)
    assert unchanged(bad, before)


def test_a_large_constant_in_the_output_does_not_hide_a_change() -> None:
    class Beside(forms.TanhValues):
        def forward(self, x: Any) -> Any:
            return 1e4 + super().forward(x)

    model = Beside().double()
    with pytest.raises(InvalidInput, match=r"V -> O.*does not have the symmetry"):
        set_balance(model, 0.3)


class Experts(nn.Module):
    """Only one branch runs on small inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
        self.idle = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x: Any) -> Any:
        return self.idle(x) if float(x.abs().max()) > 1e6 else self.used(x)


def test_a_pair_that_no_input_reaches_is_not_written() -> None:
    model = Experts()
    before = bits(model.idle)
    report = set_balance(model, 0.5, on_refusal="leave")
    assert "used.0 -> used.2" in report.balance
    assert any(layer.layer == "idle.0 -> idle.2" and "no probe input" in layer.reason for layer in report.left)
    assert unchanged(model.idle, before)


def test_every_output_counts_unless_one_is_named() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            hidden = functional.relu(self.first(x))
            return self.second(hidden), hidden

    x = torch.randn(5, 4, generator=seeded(2))
    pairs = [("first", "relu", "second")]
    with pytest.raises(InvalidInput, match="does not have the symmetry"):
        set_balance(Two(), 0.5, pairs)
    report = set_balance(Two(), 0.5, pairs, example_inputs=x, output=lambda result: result[0])
    assert report.output_change < 1e-5


def test_example_inputs_that_the_model_does_not_take_are_refused() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    with pytest.raises(InvalidInput):
        set_balance(model, 0.5, [("0", "relu", "2")], example_inputs=torch.randn(5, 3, generator=seeded(2)))
    with pytest.raises(InvalidInput, match="not finite"):
        set_balance(model, 0.5, [("0", "relu", "2")], example_inputs=torch.full((5, 4), float("nan")))


def test_layers_without_a_shape_yet_are_named() -> None:
    with pytest.raises(InvalidInput, match="lazy layers"):
        balance_profile(nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.Linear(4, 2)))


def test_parameters_that_cannot_be_read_or_written_are_named() -> None:
    with pytest.raises(InvalidInput, match="without values"):
        set_balance(nn.Sequential(nn.Linear(4, 6, device="meta"), nn.ReLU(), nn.Linear(6, 3, device="meta")), 0.0)
    with torch.inference_mode():
        model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    with pytest.raises(InvalidInput, match="inference mode"):
        set_balance(model, 0.5)
    whole = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    whole[0].weight = nn.Parameter(torch.ones(6, 4, dtype=torch.int8), requires_grad=False)
    with pytest.raises(InvalidInput, match="holds int8"):
        set_balance(whole, 0.5)
