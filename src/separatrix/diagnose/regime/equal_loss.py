"""Bring networks to the same training loss, the only place where their regimes can be compared fairly.

A lazy network often learns more slowly: compared after equally many steps it looks worse only because it is less
trained. Train each to the same loss, or pick the checkpoint of each run that has it.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, resolve
from separatrix.core.outcome import Outcome
from separatrix.core.result import Result

from ..losses import Loss, loss_for, loss_function
from ..model_call import Pick, call_model, call_with, evaluation_mode, n_samples, prediction, take
from .batch_statistics import own_statistics
from .kernel import MAX_SAMPLES, tangent_kernel
from .sampling import sample_index

MakeOptimiser: TypeAlias = Callable[[list[nn.Parameter], float], torch.optim.Optimizer]
"""Makes an optimiser of torch from parameters and a learning rate."""

OPTIMISERS: dict[str, MakeOptimiser] = {
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr),
    "momentum": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9),
    "adam": lambda parameters, lr: torch.optim.Adam(parameters, lr=lr),
}


@final
@dataclasses.dataclass(frozen=True, repr=False)
class EqualLossRun(Result):
    """Training to a loss: how it ended, the steps it took, the loss it has, and the state it left.

    ``passed`` has the step, the loss and the state at which each of the ``levels`` was first passed.
    """

    outcome: Outcome
    steps: int
    loss: float
    lr: float
    state: dict[str, Tensor] = dataclasses.field(repr=False)
    passed: tuple[tuple[int, float, dict[str, Tensor]], ...] = dataclasses.field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether the loss was reached."""
        return self.outcome is Outcome.CONVERGED


def train_to_loss(
    model: nn.Module,
    data: tuple[Any, Any],
    target_loss: float,
    *,
    loss: Loss | None = None,
    optimiser: str | MakeOptimiser = "sgd",
    lr: float | Literal["auto"] = "auto",
    levels: Sequence[float] = (),
    max_steps: int = 20_000,
    output: Pick = prediction,
) -> EqualLossRun:
    """Full-batch training until the loss falls below a target; in place, on the model given.

    Args:
        model: the model; its parameters are trained in place.
        data: inputs and targets of the whole training set.
        target_loss: where to stop.
        loss: ``"mse"`` (as torch has it), ``"half_mse"`` (half the squared error per sample), ``"cross_entropy"`` or a
            function; without one, cross entropy for class numbers and ``"mse"`` otherwise.
        optimiser: ``"sgd"`` (gradient descent), ``"momentum"`` (0.9), ``"adam"``, or a function of the parameters and
            the learning rate that returns an optimiser of torch.
        lr: learning rate; ``"auto"`` takes ``stable_lr``, so that networks are compared at matched stability (a tenth
            of it with momentum, 1e-3 with Adam, whose steps do not scale with the gradient). If training with it
            leaves the numbers, it begins again with a quarter of the rate; the result names the rate it ended with.
        levels: losses above the target at which the state is kept as well.
        max_steps: limit of steps.
        output: takes the model's output and returns the prediction.

    Returns:
        The outcome (``CONVERGED``, ``OUT_OF_STEPS`` or ``NON_FINITE``), steps, final loss and state.

    Raises:
        InvalidInput: a target or learning rate that is not positive, a target that the present loss does not exceed.

    Cost: one forward and backward pass per step.
    """
    require_positive(target_loss, "target_loss")
    require_integer(max_steps, "max_steps", at_least=1)
    inputs, targets = data
    chosen = loss_for(loss, targets)
    rate = _rate(lr, optimiser, model, inputs, output) * _curvature_share(chosen, lr, optimiser, model, inputs, output)
    start = state_of(model)
    for attempt in range(_MOST_ATTEMPTS):
        run = _train(model, data, target_loss, chosen, optimiser, rate, levels, max_steps, output)
        if run.outcome is not Outcome.NON_FINITE or lr != "auto" or attempt == _MOST_ATTEMPTS - 1:
            break
        model.load_state_dict(start)
        rate /= 4
    return run


_MOST_ATTEMPTS = 8
"""Starts with an automatic rate, each with a quarter of the one before."""


def _curvature_share(
    loss: Loss, lr: object, optimiser: str | MakeOptimiser, model: nn.Module, inputs: Any, output: Pick
) -> float:
    """How much larger an automatic rate of plain descent may be: ``stable_lr`` is that of half the squared error.

    torch's mean squared error is 2 / outputs of it, so that its curvature is, too.
    """
    if lr != "auto" or loss != "mse" or optimiser == "adam":
        return 1.0
    with torch.no_grad(), evaluation_mode(model):
        shown = output(call_model(model, take(inputs, torch.arange(1))))
    return shown[0].numel() / 2


def _train(
    model: nn.Module,
    data: tuple[Any, Any],
    target_loss: float,
    loss: Loss,
    optimiser: str | MakeOptimiser,
    rate: float,
    levels: Sequence[float],
    max_steps: int,
    output: Pick,
) -> EqualLossRun:
    """One training with a given rate."""
    inputs, targets = data
    make, measure = _maker(optimiser), loss_function(loss)
    parameters = [p for p in model.parameters() if p.requires_grad]
    stepper = _without_closure(make(parameters, rate))
    waiting = sorted((level for level in levels if level > target_loss), reverse=True)
    passed: list[tuple[int, float, dict[str, Tensor]]] = []
    value, step = math.inf, 0
    for step in range(max_steps + 1):
        with torch.enable_grad():
            current = measure(output(call_model(model, inputs)), targets)
            gradients = torch.autograd.grad(current, parameters, allow_unused=True)
        value = float(current.detach())
        if step == 0 and value <= target_loss:
            raise InvalidInput(
                f"target_loss must lie below the present loss, {value:.6g}; got {target_loss:g}: nothing to train."
            )
        while waiting and value <= waiting[0]:
            waiting.pop(0)
            passed.append((step, value, state_of(model)))
        if not math.isfinite(value) or value <= target_loss or step == max_steps:
            break
        _step(stepper, parameters, gradients)
    outcome = Outcome.CONVERGED if value <= target_loss else Outcome.OUT_OF_STEPS
    outcome = outcome if math.isfinite(value) else Outcome.NON_FINITE
    return EqualLossRun(outcome, step, value, rate, state_of(model), tuple(passed))


def _without_closure(stepper: object) -> torch.optim.Optimizer:
    """The optimiser, if it steps from gradients alone."""
    if not isinstance(stepper, torch.optim.Optimizer):
        raise InvalidInput(f"optimiser must make an optimiser of torch; got {type(stepper).__name__}.")
    closure = inspect.signature(type(stepper).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise InvalidInput(
            f"{type(stepper).__name__} evaluates the loss itself (its step needs a closure): train with it yourself "
            "and pass after= or train_fn=."
        )
    return stepper


def _step(stepper: torch.optim.Optimizer, parameters: list[nn.Parameter], gradients: Sequence[Tensor | None]) -> None:
    """One step with the given gradients; the gradients that the parameters carry are put back."""
    carried = [parameter.grad for parameter in parameters]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    try:
        stepper.step()
    finally:
        for parameter, gradient in zip(parameters, carried, strict=True):
            parameter.grad = gradient


def _maker(optimiser: str | MakeOptimiser) -> MakeOptimiser:
    if callable(optimiser):
        return optimiser
    return resolve("optimiser", optimiser, OPTIMISERS, also="a function of parameters and learning rate")


def _rate(lr: object, optimiser: str | MakeOptimiser, model: nn.Module, inputs: Any, output: Pick) -> float:
    """The learning rate that was given, or the stable one."""
    if isinstance(lr, int | float):
        require_positive(lr, "lr")
        return float(lr)
    choose("lr", lr, ("auto",), also="a positive number")
    if callable(optimiser):
        raise InvalidInput("lr must be a number with an optimiser of your own: what is stable depends on it.")
    if optimiser == "adam":
        return 1e-3
    return stable_lr(model, inputs, output=output) * (0.1 if optimiser == "momentum" else 1.0)


def stable_lr(model: nn.Module, inputs: Any, *, output: Pick = prediction) -> float:
    """2 / (3 top), with top the largest eigenvalue of the traced kernel over outputs and samples: a third below 2/top.

    The curvature of the squared loss is the kernel's at the start; the mean over outputs stands for each of them. Batch
    normalisation of a model in training mode takes the statistics of the inputs.
    """
    sample = take(inputs, sample_index(n_samples(inputs), MAX_SAMPLES))
    state = own_statistics(model, state_of(model), inputs) if model.training else None
    kernel = tangent_kernel(model, sample, state=state, output=output)
    if not bool(kernel.kernel.isfinite().all()):
        raise InvalidInput("the tangent kernel is not finite on these inputs: look for NaN in the inputs and weights.")
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
    loss: Loss | None = None,
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


def loss_of(
    model: nn.Module, state: Mapping[str, Tensor], data: tuple[Any, Any], loss: Loss | None, output: Pick
) -> float:
    """The loss with other parameters, in evaluation mode."""
    with torch.no_grad(), evaluation_mode(model):
        return float(loss_function(loss_for(loss, data[1]))(output(call_with(model, state, data[0])), data[1]))


def state_of(model: nn.Module | Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of a model's parameters and buffers, or of a state."""
    state = model.state_dict() if isinstance(model, nn.Module) else model
    return {name: tensor.detach().clone() for name, tensor in state.items() if isinstance(tensor, Tensor)}
