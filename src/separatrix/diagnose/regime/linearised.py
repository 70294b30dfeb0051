"""The model linearised in its parameters around the start of training, and how badly it predicts the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.result import Result

from ..model_call import Pick, call_with, evaluation_mode, plain_attention, prediction
from .batch_statistics import of_the_batch


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LinearisedPrediction(Result):
    """f(x; before) + J (after - before), the true output, and the error relative to how far the output moved."""

    prediction: Tensor
    output: Tensor
    error: float


def linearised_prediction(
    model: nn.Module,
    inputs: Any,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    *,
    output: Pick = prediction,
    batch_statistics: bool = False,
) -> LinearisedPrediction:
    """Predict the outputs after training by the first-order expansion in the parameters before it.

    Args:
        model: any model; unchanged.
        inputs: a batch.
        before: parameters and buffers before training.
        after: parameters and buffers after training.
        output: takes the model's output and returns the prediction.
        batch_statistics: batch normalisation takes the statistics of ``inputs``, as in training; they then count as
            part of the function that is linearised.

    Returns:
        Prediction, true output, and ``error`` = |true - predicted| / |true - initial|: 0 for a lazy network, of order 1
        when the linearised model explains nothing.

    Cost: one Jacobian-vector product (two backward passes) and two forward passes.
    """
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    start = {name: before[name].detach() for name in names}
    step = {name: after[name].detach().to(start[name]) - start[name] for name in names}
    fixed = {name: value.detach() for name, value in before.items() if name not in start}

    def run(parameters: dict[str, Tensor]) -> Tensor:
        return output(call_with(model, {**_copies(fixed), **parameters}, inputs))

    with evaluation_mode(model), of_the_batch(model, batch_statistics), plain_attention():
        initial, slope = _directional(run, start, step)
        with torch.no_grad():
            final_output = output(call_with(model, _copies(after), inputs))
    predicted = initial + slope
    moved = float((final_output - initial).norm())
    error = float((final_output - predicted).norm()) / moved if moved > 0 else 0.0
    return LinearisedPrediction(predicted, final_output, error)


def _copies(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies, since a call may change buffers in place."""
    return {name: value.detach().clone() for name, value in state.items()}


def _directional(
    run: Callable[[dict[str, Tensor]], Tensor], start: dict[str, Tensor], step: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Value and derivative along ``step``, by differentiating a backward pass: forward mode lacks some operations."""
    names = list(start)

    def along(*leaves: Tensor) -> Tensor:
        return run(dict(zip(names, leaves, strict=True)))

    with torch.enable_grad():
        value, slope = torch.autograd.functional.jvp(along, tuple(start.values()), tuple(step.values()))
    return value.detach(), slope.detach()
