r"""Which optimisers keep the balance of layer pairs, in one sentence each.

With learning rates :math:`\eta_l` of its own for each parameter, gradient flow keeps the balance with every square
divided by its rate, :math:`B B^\top / \eta_B - A A^\top / \eta_A`. Momentum :math:`\mu` with dampening :math:`\delta`
adds up past gradients, so that small steps follow the flow at the rate :math:`\eta (1 - \delta) / (1 - \mu)`: layers
with momentum of their own have rates of their own. Weight decay g shrinks the square of a layer like
:math:`e^{-2 g \eta t}`; where :math:`g \eta` is the same for all, what is kept without it shrinks like that.

Muon replaces the gradient of a matrix by its polar factor. For one hidden unit per mode (aligned layers) it moves both
singular values of a mode at the same speed, so their *difference* is kept, not that of their squares. In general it
keeps nothing: at generic weights with no more hidden units than inputs and outputs its steps, over all tasks, point in
every direction of weight space, and a function of the weights that no step changes must be constant.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch

from separatrix.core.labelled import Labelled
from separatrix.core.names import resolve, suggest_options

from ..optimisers import changed_from_outside, torch_class


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
_DECAY = "the quantity shrinks like exp(-2 g t) with weight decay g and t the sum of the learning rates of all steps"
_INERT_DECAY = f"{_DECAY}, over 1 - momentum (times 1 - dampening)"
_WEIGHTED_DECAY = (
    "the learning rates differ, but weight decay times learning rate is the same for all: the difference with every "
    "parameter's square divided by its own learning rate shrinks like exp(-2 g t) with g t the sum of that product"
)
_ENTRIES = "steps are rescaled entry by entry, which no conservation law survives, however small lr is"
_TWO_RATES = (
    "the learning rates differ: the balance itself drifts, but the same difference with every parameter's square "
    "divided by its own learning rate is kept, up to lr per training time"
)
_TWO_INERTIAS = (
    "the rates at which parameters move, lr / (1 - momentum) (times 1 - dampening), differ: the balance itself drifts, "
    "but the same difference with every parameter's square divided by its own rate is kept, up to lr per training time"
)
_STILL = "a learning rate is zero: its parameters stand still while the others move, and their difference has no law"
_ENDLESS = "with a momentum of one or more steps grow for ever: no law of gradient flow holds"
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
_HOOKS = "its step is changed from outside (hooks, or a step put in its place), and what they do is not known here"
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
    if changed_from_outside(optimiser):
        return Keeps.UNKNOWN, f"{_HOOKS}; {_STRANGER.partition('; ')[2]}"
    groups = optimiser.param_groups
    if _steps_like(optimiser, torch.optim.SGD):
        return _descent_law(
            [_Group(*(float(g[key]) for key in ("lr", "weight_decay", "momentum", "dampening"))) for g in groups]
        )
    if _steps_like(optimiser, torch.optim.ASGD):
        return _descent_law([_Group(float(g["lr"]), float(g["weight_decay"] + g["lambd"])) for g in groups])
    for name, law in _CLASSES.items():
        kind = getattr(torch.optim, name, None)  # older versions of torch lack some
        if kind is not None and _steps_like(optimiser, kind):
            return law
    return Keeps.UNKNOWN, _STRANGER


def _steps_like(optimiser: torch.optim.Optimizer, kind: type[torch.optim.Optimizer]) -> bool:
    """Whether an optimiser is of a class of torch and takes its step, not one of its own."""
    own = torch_class(optimiser)
    return own is not None and issubclass(own, kind)


@final
@dataclasses.dataclass(frozen=True)
class _Group:
    """The settings of a group of parameters under descent."""

    lr: float
    decay: float
    momentum: float = 0.0
    dampening: float = 0.0

    @property
    def rate(self) -> float:
        """How fast small steps follow the flow: past gradients add up to 1 / (1 - momentum) of them."""
        return self.lr * (1 - self.dampening) / (1 - self.momentum) if self.momentum else self.lr


def _descent_law(groups: list[_Group]) -> tuple[Keeps, str]:
    """The law of descent from the settings of each group of parameters."""
    momentum = any(group.momentum for group in groups)
    if any(group.momentum >= 1 for group in groups):
        return Keeps.NOT_KEPT, _ENDLESS
    rates = [group.rate for group in groups]
    if any(rates) and not all(rates):
        return Keeps.NOT_KEPT, _STILL
    inertia = f"; {_MOMENTUM}" if momentum else ""
    if any(group.decay for group in groups):
        if not _alike([group.rate * group.decay for group in groups]):
            return Keeps.NOT_KEPT, _TWO_DECAYS
        decay = _INERT_DECAY if momentum else _DECAY
        return Keeps.DECAYS, (decay if _alike(rates) else _WEIGHTED_DECAY) + inertia
    if not _alike(rates):
        return Keeps.WEIGHTED, (_TWO_INERTIAS if momentum else _TWO_RATES) + inertia
    return (Keeps.TO_FIRST_ORDER, _MOMENTUM) if momentum else (Keeps.TO_SECOND_ORDER, _EACH_STEP)


def _alike(values: list[float]) -> bool:
    """Whether numbers that were computed along different ways are meant to be the same."""
    return all(math.isclose(value, values[0], rel_tol=1e-9) for value in values)
