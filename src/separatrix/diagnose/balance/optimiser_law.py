r"""Which optimisers keep the balance of layer pairs, in one sentence each.

With learning rates :math:`\eta_l` of its own for each parameter, gradient flow keeps the balance with every square
divided by its rate, :math:`B B^\top / \eta_B - A A^\top / \eta_A`.

Muon replaces the gradient of a matrix by its polar factor. For one hidden unit per mode (aligned layers) it moves both
singular values of a mode at the same speed, so their *difference* is kept, not that of their squares. In general it
keeps nothing: at generic weights with no more hidden units than inputs and outputs its steps, over all tasks, point in
every direction of weight space, and a function of the weights that no step changes must be constant.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import final

import torch

from separatrix.core.labelled import Labelled
from separatrix.core.names import resolve, suggest_options


class Keeps(Labelled):
    """How well an optimiser keeps what gradient flow conserves."""

    TO_SECOND_ORDER = "kept up to lr^2 per step"
    TO_FIRST_ORDER = "kept only to first order in lr"
    WEIGHTED = "kept with every square divided by its learning rate"
    DECAYS = "decays with the weight decay"
    NOT_KEPT = "not kept at any lr"
    UNKNOWN = "not known"


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class OptimiserLaw:
    """An optimiser's name, how well it keeps the balance, and why."""

    name: str
    keeps: Keeps
    sentence: str


_EACH_STEP = (
    "each step changes the conserved quantity by exactly lr^2 times the same form of the gradients, "
    "so the drift over a fixed training time is of order lr"
)
_MOMENTUM = (
    "momentum moves the weights along past gradients: the drift over a fixed training time is still of order lr, "
    "but far larger than that of plain gradient descent"
)
_DECAY = "the quantity shrinks like exp(-2 g t) with weight decay g and t = lr times steps"
_ENTRIES = "steps are rescaled entry by entry, which no conservation law survives, however small lr is"
_TWO_RATES = (
    "the learning rates differ: the balance itself drifts, but the same difference with every parameter's square "
    "divided by its own learning rate is kept, up to lr per training time"
)
_TWO_DECAYS = "parameters decay at different rates (weight decay times learning rate), so their difference has no law"
_MUON = (
    "the gradient of each matrix is replaced by its polar factor, and over all tasks such steps reach every direction "
    "of weight space: nothing is kept (only in aligned layers the differences of singular values are)"
)
_LBFGS = (
    "steps are past gradients combined by an estimate of the inverse curvature, which couples the layers; "
    "the law of gradient flow does not hold for them"
)
_FACTORED = "steps are divided by a root mean square over rows and columns, which no conservation law survives"
_STRANGER = "this optimiser is not known here; conservation_check measures the first step, training shows the rest"

_NAMED = {
    "gd": (Keeps.TO_SECOND_ORDER, _EACH_STEP),
    "sgd": (Keeps.TO_SECOND_ORDER, _EACH_STEP),
    "momentum": (Keeps.TO_FIRST_ORDER, _MOMENTUM),
    "weight_decay": (Keeps.DECAYS, _DECAY),
    "adam": (Keeps.NOT_KEPT, _ENTRIES),
    "muon": (Keeps.NOT_KEPT, _MUON),
    "lbfgs": (Keeps.NOT_KEPT, _LBFGS),
}
_CLASSES = {
    **dict.fromkeys(
        ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SparseAdam"),
        (Keeps.NOT_KEPT, _ENTRIES),
    ),
    "Adafactor": (Keeps.NOT_KEPT, _FACTORED),
    "LBFGS": (Keeps.NOT_KEPT, _LBFGS),
    "Muon": (Keeps.NOT_KEPT, _MUON),
}


def optimiser_law(optimiser: str | torch.optim.Optimizer) -> OptimiserLaw:
    """What an optimiser does to the balance of layer pairs.

    Args:
        optimiser: ``"gd"``, ``"sgd"``, ``"momentum"``, ``"weight_decay"`` (SGD with weight decay), ``"adam"``,
            ``"muon"``, ``"lbfgs"``, or an optimiser of torch, whose class and settings decide.

    Raises:
        InvalidInput: an unknown name.

    Example:
        >>> optimiser_law("adam").keeps.label
        'not kept at any lr'
    """
    if isinstance(optimiser, torch.optim.Optimizer):
        return OptimiserLaw(type(optimiser).__name__, *_law(optimiser))
    return OptimiserLaw(optimiser, *resolve("optimiser", optimiser, _NAMED, also="an optimiser of torch"))


def _law(optimiser: torch.optim.Optimizer) -> tuple[Keeps, str]:
    """By the step the optimiser takes, whatever its class is called."""
    if _steps_like(optimiser, torch.optim.SGD):
        return _descent_law(
            [(float(g["lr"]), float(g["weight_decay"]), float(g["momentum"])) for g in optimiser.param_groups]
        )
    if _steps_like(optimiser, torch.optim.ASGD):
        return _descent_law(
            [(float(g["lr"]), float(g["weight_decay"] + g["lambd"]), 0.0) for g in optimiser.param_groups]
        )
    for name, law in _CLASSES.items():
        kind = getattr(torch.optim, name, None)  # older versions of torch lack some
        if kind is not None and _steps_like(optimiser, kind):
            return law
    return Keeps.UNKNOWN, _STRANGER


def _steps_like(optimiser: torch.optim.Optimizer, kind: type[torch.optim.Optimizer]) -> bool:
    """Whether an optimiser is of a class and takes its step, not one of its own."""
    return isinstance(optimiser, kind) and inspect.unwrap(type(optimiser).step) is inspect.unwrap(kind.step)


def _descent_law(groups: list[tuple[float, float, float]]) -> tuple[Keeps, str]:
    """The law of descent from the learning rate, weight decay and momentum of each group of parameters."""
    rates, decays = {rate for rate, _, _ in groups}, {decay for _, decay, _ in groups}
    momentum = any(inertia for _, _, inertia in groups)
    if any(decays):
        if len(rates) > 1 or len(decays) > 1:
            return Keeps.NOT_KEPT, _TWO_DECAYS
        return Keeps.DECAYS, f"{_DECAY}; {_MOMENTUM}" if momentum else _DECAY
    if len(rates) > 1:
        return Keeps.WEIGHTED, f"{_TWO_RATES}; {_MOMENTUM}" if momentum else _TWO_RATES
    return (Keeps.TO_FIRST_ORDER, _MOMENTUM) if momentum else (Keeps.TO_SECOND_ORDER, _EACH_STEP)
