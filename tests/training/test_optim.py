from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings as hypothesis_settings, strategies as st
from torch import nn

from separatrix.core import InvalidInput
from separatrix.training import ParameterGroup, TrainingSettings, clip_gradients, make_optimiser, train, warmup_cosine
from separatrix.training.optim import rate_factor


def test_the_schedule_of_the_document_has_its_known_values() -> None:
    factors = {step: warmup_cosine(step, 52000, 2000) for step in (0, 999, 1999, 2000, 27000, 51999)}
    assert factors[0] == pytest.approx(1 / 2000)
    assert factors[999] == pytest.approx(0.5)
    assert factors[1999] == factors[2000] == 1.0
    assert factors[27000] == pytest.approx(0.5)
    assert factors[51999] == pytest.approx((math.pi / 50000) ** 2 / 4, rel=1e-6)  # 1 - cos x = x^2 / 2


@given(st.integers(1, 300), st.integers(0, 100))
@hypothesis_settings(max_examples=50, deadline=None)
def test_the_schedule_rises_then_falls_and_stays_between_zero_and_one(n_after: int, warmup: int) -> None:
    values = [warmup_cosine(step, warmup + n_after, warmup) for step in range(warmup + n_after)]
    assert all(0 < value <= 1 for value in values)
    assert values[:warmup] == sorted(values[:warmup])
    assert values[warmup:] == sorted(values[warmup:], reverse=True)
    assert values[warmup] == 1.0


def test_a_constant_schedule_warms_up_and_stays() -> None:
    settings = TrainingSettings(n_steps=10, lr=0.1, warmup_steps=4)
    assert [rate_factor(step, settings) for step in (0, 1, 3, 4, 9)] == [0.25, 0.5, 1.0, 1.0, 1.0]


def parameters_with(gradients: list[torch.Tensor]) -> list[nn.Parameter]:
    parameters = [nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    return parameters


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_agrees_with_torch(generator: torch.Generator, max_norm: float) -> None:
    gradients = [torch.randn(3, 4, generator=generator), torch.randn(5, generator=generator)]
    ours, theirs = parameters_with(gradients), parameters_with(gradients)
    norms = clip_gradients(ours, max_norm)
    expected = nn.utils.clip_grad_norm_(theirs, max_norm)
    assert norms.tolist() == pytest.approx([float(expected)], rel=1e-6)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-5, atol=1e-7)  # torch adds 1e-6 to the norm


def test_members_are_clipped_each_on_its_own(generator: torch.Generator) -> None:
    gradients = [torch.randn(2, 3, generator=generator), torch.randn(2, 4, generator=generator)]
    gradients = [gradient * torch.tensor([[100.0], [0.001]]) for gradient in gradients]
    clipped = parameters_with(gradients)
    norms = clip_gradients(clipped, 1.0, n_members=2)
    both = torch.cat([parameter.grad for parameter in clipped], dim=1)  # type: ignore[misc]
    assert norms.tolist() == pytest.approx(torch.cat(gradients, 1).norm(dim=1).tolist())
    assert both[0].norm().item() == pytest.approx(1.0)
    assert torch.equal(both[1], torch.cat(gradients, 1)[1])


def test_a_zero_gradient_stays_zero() -> None:
    parameters = parameters_with([torch.zeros(3)])
    assert clip_gradients(parameters, 1.0).tolist() == [0.0]
    assert parameters[0].grad is not None
    assert parameters[0].grad.tolist() == [0.0] * 3


def named_model() -> nn.Module:
    return nn.ModuleDict({"basis": nn.Linear(2, 2), "rest": nn.Linear(2, 1)})


def test_groups_have_their_own_rate_and_decay_and_the_rest_the_common_one() -> None:
    groups = (ParameterGroup(names="basis.*", lr=1e-4), ParameterGroup(names="*.weight", weight_decay=0.3))
    settings = TrainingSettings(n_steps=1, lr=0.1, optimiser="rmsprop", groups=groups)
    model = named_model()
    optimiser = make_optimiser(model, settings)
    found = {id(p): (g["lr"], g["weight_decay"]) for g in optimiser.param_groups for p in g["params"]}
    expected = {
        "basis.weight": (1e-4, 0.0),  # the first pattern that fits counts
        "basis.bias": (1e-4, 0.0),
        "rest.weight": (0.1, 0.3),
        "rest.bias": (0.1, 0.0),
    }
    assert {name: found[id(p)] for name, p in model.named_parameters()} == expected
    assert isinstance(optimiser, torch.optim.RMSprop)
    assert optimiser.defaults["alpha"] == 0.99
    assert optimiser.defaults["momentum"] == 0


def test_a_group_without_parameters_is_refused_with_those_that_are_left() -> None:
    settings = TrainingSettings(n_steps=1, lr=0.1, groups=(ParameterGroup(names="basiss.*"),))
    with pytest.raises(InvalidInput, match=r"named like 'basiss\.\*'; left for this group: basis\.bias"):
        make_optimiser(named_model(), settings)


def test_a_group_s_rate_is_the_peak_of_the_schedule() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    groups = (ParameterGroup(names="weight", lr=0.25),)
    settings = TrainingSettings(n_steps=2, lr=9.0, optimiser="sgd", beta1=0.0, warmup_steps=2, groups=groups)
    train(model, int, lambda m, step: m.weight.square().sum(), settings)
    assert model.weight.item() == pytest.approx(0.75 * 0.5)


def test_rmsprop_is_that_of_its_definition() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    train(model, int, lambda m, step: m.weight.square().sum(),
          TrainingSettings(n_steps=3, lr=0.01, optimiser="rmsprop", beta2=0.9))  # fmt: skip
    weight, square = 1.0, 0.0
    for _ in range(3):
        gradient = 2 * weight
        square = 0.9 * square + 0.1 * gradient**2
        weight -= 0.01 * gradient / (square**0.5 + 1e-8)
    assert model.weight.item() == pytest.approx(weight, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ParameterGroup(names=""), "names must be a pattern"),
        (lambda: ParameterGroup(names="a", lr=0.0), "lr must be a positive number"),
        (lambda: ParameterGroup(names="a", weight_decay=-1.0), "weight_decay must be a number of at least 0"),
    ],
)
def test_wrong_groups_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_the_rate_stays_at_zero_after_the_last_step() -> None:
    assert warmup_cosine(10**9, 3, 3) == warmup_cosine(12, 6, 2) == 0.0
