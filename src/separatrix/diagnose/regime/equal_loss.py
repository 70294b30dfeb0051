"""Bring networks to the same training loss, the only place where their regimes can be compared fairly.

A lazy network often learns more slowly: compared after equally many steps it looks worse only because it is less
trained. Train each to the same loss, or pick the checkpoint of each run that has it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result

from ..losses import Loss, loss_function
from ..model_call import Pick, call_model, call_with, evaluation_mode, n_samples, prediction, take
from .kernel import MAX_SAMPLES, tangent_kernel


@final
@dataclasses.dataclass(frozen=True, repr=False)
class EqualLossRun(Result):
    """Training to a loss: how it ended, the steps it took, the loss it has, and the state it left."""

    outcome: Outcome
    steps: int
    loss: float
    lr: float
    state: dict[str, Tensor] = dataclasses.field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether the loss was reached."""
        return self.outcome is Outcome.CONVERGED


def train_to_loss(
    model: nn.Module,
    data: tuple[Any, Any],
    target_loss: float,
    *,
    loss: Loss = "mse",
    lr: float | Literal["auto"] = "auto",
    max_steps: int = 20_000,
    output: Pick = prediction,
) -> EqualLossRun:
    """Full-batch gradient descent until the loss falls below a target; in place, on the model given.

    Args:
        model: the model; its parameters are trained in place.
        data: inputs and targets of the whole training set.
        target_loss: where to stop.
        loss: ``"mse"`` (half the squared error per sample), ``"cross_entropy"`` or a function.
        lr: learning rate; ``"auto"`` takes ``stable_lr``, so that networks are compared at matched stability.
        max_steps: limit of steps.
        output: takes the model's output and returns the prediction.

    Returns:
        The outcome (``CONVERGED``, ``OUT_OF_STEPS`` or ``NON_FINITE``), steps, final loss and state.

    Raises:
        InvalidInput: a target or learning rate that is not positive.

    Cost: one forward and backward pass per step.
    """
    require_positive(target_loss, "target_loss")
    require_integer(max_steps, "max_steps", at_least=1)
    inputs, targets = data
    rate = _rate(lr, model, inputs, output)
    measure, parameters = loss_function(loss), [p for p in model.parameters() if p.requires_grad]
    value, step = math.inf, 0
    for step in range(max_steps + 1):
        with torch.enable_grad():
            current = measure(output(call_model(model, inputs)), targets)
            gradients = torch.autograd.grad(current, parameters, allow_unused=True)
        value = float(current.detach())
        if not math.isfinite(value) or value <= target_loss or step == max_steps:
            break
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.sub_(gradient, alpha=rate)
    outcome = Outcome.CONVERGED if value <= target_loss else Outcome.OUT_OF_STEPS
    outcome = outcome if math.isfinite(value) else Outcome.NON_FINITE
    return EqualLossRun(outcome, step, value, rate, state_of(model))


def _rate(lr: object, model: nn.Module, inputs: Any, output: Pick) -> float:
    """The learning rate that was given, or the stable one."""
    if isinstance(lr, int | float):
        require_positive(lr, "lr")
        return float(lr)
    choose("lr", lr, ("auto",), also="a positive number")
    return stable_lr(model, inputs, output=output)


def stable_lr(model: nn.Module, inputs: Any, *, output: Pick = prediction) -> float:
    """2 / (3 top), with top the largest eigenvalue of the traced kernel over outputs and samples: a third below 2/top.

    The curvature of the squared loss is the kernel's at the start; the mean over outputs stands for each of them.
    """
    sample = take(inputs, slice(0, min(MAX_SAMPLES, n_samples(inputs))))
    kernel = tangent_kernel(model, sample, output=output)
    top = float(torch.linalg.eigvalsh(kernel.kernel)[-1]) / (kernel.n_outputs * n_samples(sample))
    if not top > 0:
        raise InvalidInput("the tangent kernel vanishes on these inputs: the model cannot learn from its start.")
    return 2 / (3 * top)


def pick_at_loss(
    model: nn.Module,
    checkpoints: Sequence[Mapping[str, Tensor]],
    data: tuple[Any, Any],
    target_loss: float,
    *,
    loss: Loss = "mse",
    output: Pick = prediction,
) -> tuple[int, float]:
    """The checkpoint of a run whose training loss is nearest to a target, on a logarithmic scale.

    Args:
        model: the model the checkpoints belong to; unchanged.
        checkpoints: states in the order of training.
        data: inputs and targets.
        target_loss: the loss wanted.
        loss: as in ``train_to_loss``.
        output: takes the model's output and returns the prediction.

    Returns:
        The index of the checkpoint and its loss. Compare the loss with the target: a run that never came near it has
        no fair checkpoint.

    Raises:
        InvalidInput: no checkpoints, or none with a finite positive loss.
    """
    require_positive(target_loss, "target_loss")
    measured = [loss_of(model, state, data, loss, output) for state in checkpoints]
    usable = [(abs(math.log(value / target_loss)), i) for i, value in enumerate(measured) if 0 < value < math.inf]
    if not usable:
        raise InvalidInput(f"none of the {len(measured)} checkpoints has a finite positive loss.")
    index = min(usable)[1]
    return index, measured[index]


def loss_of(model: nn.Module, state: Mapping[str, Tensor], data: tuple[Any, Any], loss: Loss, output: Pick) -> float:
    """The loss with other parameters, in evaluation mode."""
    with torch.no_grad(), evaluation_mode(model):
        return float(loss_function(loss)(output(call_with(model, state, data[0])), data[1]))


def state_of(model: nn.Module | Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of a model's parameters and buffers, or of a state."""
    state = model.state_dict() if isinstance(model, nn.Module) else model
    return {name: tensor.detach().clone() for name, tensor in state.items() if isinstance(tensor, Tensor)}
