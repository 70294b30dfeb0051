from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput
from separatrix.diagnose import Law, conservation_check, find_pairs
from separatrix.experiments.ours.conservation_blocks import BLOCKS, Block, reference_block


def batch_for(block: Block, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    shape = block.model(block.inputs).shape
    return block.inputs, torch.randn(shape, generator=generator, dtype=torch.float64)


def cubic(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (prediction - target).abs().pow(3).mean()


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("loss", ["mse", cubic])
@pytest.mark.parametrize("name", BLOCKS)
def test_each_block_keeps_its_law_and_no_larger_one(name: str, loss: object, generator: torch.Generator) -> None:
    block = reference_block(name, generator=generator)
    batch = batch_for(block, generator)
    found = conservation_check(block.model, loss, batch)  # type: ignore[arg-type]
    for pair, law in block.laws.items():
        if law is Law.NOTHING:
            assert found[pair].residual > 1e-2
            assert not found[pair].holds
        else:
            assert found[pair].residual < 1e-13  # rounding in float64
            assert found[pair].holds
    larger = [
        dataclasses.replace(p, law=block.broken[p.name])
        for p in find_pairs(block.model).pairs
        if p.name in block.broken
    ]
    if larger:
        assert all(pair.residual > 1e-2 for pair in conservation_check(block.model, loss, batch, larger).pairs)  # type: ignore[arg-type]


def test_nothing_is_kept_across_a_residual_addition(generator: torch.Generator) -> None:
    block = reference_block("residual branch", generator=generator)
    found = conservation_check(block.model, "mse", batch_for(block, generator), [("stem", "linear", "head")])
    assert found.pairs[0].residual > 0.1


@pytest.mark.parametrize("name", ["linear", "ReLU", "ReLU squared", "attention, rotary", "batch norm"])
def test_the_predicted_drift_of_one_step_is_the_measured_one(name: str, generator: torch.Generator) -> None:
    block = reference_block(name, generator=generator)
    found = conservation_check(block.model, "mse", batch_for(block, generator), lr=0.03)
    for pair in found.pairs:
        assert pair.measured_drift > 0
        assert pair.predicted_drift == pytest.approx(pair.measured_drift, rel=1e-9)
        assert pair.drift_error < 1e-13


def test_real_steps_of_sgd_drift_as_predicted(generator: torch.Generator) -> None:
    block = reference_block("ReLU", generator=generator)
    inputs, targets = batch_for(block, generator)
    predicted = conservation_check(block.model, "mse", (inputs, targets), lr=0.05).pairs[0].predicted_drift
    optimiser = torch.optim.SGD(block.model.parameters(), lr=0.05)
    pair = find_pairs(block.model).pairs[0]
    before = diagonal(block.model)
    torch.nn.functional.mse_loss(block.model(inputs), targets).backward()
    optimiser.step()
    assert float((diagonal(block.model) - before).norm()) == pytest.approx(predicted, rel=1e-9)
    assert pair.law is Law.DIAGONAL


def diagonal(model: nn.Module) -> torch.Tensor:
    first, second = model[0], model[2]  # type: ignore[index]
    return (second.weight.square().sum(0) - first.weight.square().sum(1) - first.bias.square()).detach()


def test_the_check_leaves_parameters_gradients_and_buffers_alone(generator: torch.Generator) -> None:
    block = reference_block("batch norm", generator=generator)
    batch = batch_for(block, generator)
    before = {name: value.clone() for name, value in block.model.state_dict().items()}
    conservation_check(block.model, "mse", batch, lr=0.1)
    assert all(torch.equal(value, before[name]) for name, value in block.model.state_dict().items())
    assert all(parameter.grad is None for parameter in block.model.parameters())


def test_float32_models_are_judged_within_their_rounding(generator: torch.Generator) -> None:
    block = reference_block("attention", generator=generator)
    inputs, targets = batch_for(block, generator)
    found = conservation_check(block.model.float(), "mse", (inputs.float(), targets.float()))
    assert all(pair.holds for pair in found.pairs)


def test_the_report_names_the_optimiser_and_says_what_it_keeps(generator: torch.Generator) -> None:
    block = reference_block("ReLU", generator=generator)
    text = repr(conservation_check(block.model, "mse", batch_for(block, generator), optimiser="adam"))
    assert "under adam: not kept at any lr" in text


def test_a_frozen_layer_breaks_the_law_and_is_named(generator: torch.Generator) -> None:
    block = reference_block("ReLU", generator=generator)
    batch = batch_for(block, generator)
    block.model[0].requires_grad_(False)  # type: ignore[index]
    pair = conservation_check(block.model, "mse", batch).pairs[0]
    assert not pair.holds
    assert pair.note == "0.weight is frozen"


def test_bad_input_is_refused(generator: torch.Generator) -> None:
    block = reference_block("ReLU", generator=generator)
    batch = batch_for(block, generator)
    with pytest.raises(InvalidInput, match="one finite number"):
        conservation_check(block.model, lambda f, y: f - y, batch)
    with pytest.raises(InvalidInput, match=r"pair \(inputs, targets\)"):
        conservation_check(block.model, "mse", batch[0])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown loss 'msee'"):
        conservation_check(block.model, "msee", batch)
    with pytest.raises(InvalidInput, match="no layer pair was found"):
        conservation_check(nn.Linear(4, 3).double(), "mse", batch)
    with pytest.raises(InvalidInput, match="lr must be a positive"):
        conservation_check(block.model, "mse", batch, lr=-1.0)


def test_a_layer_that_the_optimiser_does_not_train_breaks_the_law_and_is_named(generator: torch.Generator) -> None:
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).double()
    data = tuple(torch.randn(6, size, generator=generator, dtype=torch.float64) for size in (4, 3))
    one_layer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    pair = conservation_check(model, "mse", data, lr=0.1, optimiser=one_layer).pairs[0]
    assert not pair.holds
    assert pair.note == "0.weight is not trained"
    all_layers = torch.optim.SGD(model.parameters(), lr=0.1)
    assert conservation_check(model, "mse", data, optimiser=all_layers).pairs[0].holds
