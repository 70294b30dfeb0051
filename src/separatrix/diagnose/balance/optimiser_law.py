"""Which optimisers keep the balance of layer pairs, in one sentence each."""

from __future__ import annotations

import dataclasses
from typing import final

import torch

from separatrix.core.labelled import Labelled
from separatrix.core.names import resolve, suggest_options


class Keeps(Labelled):
    """How well an optimiser keeps what gradient flow conserves."""

    TO_SECOND_ORDER = "kept up to lr^2 per step"
    TO_FIRST_ORDER = "kept only to first order in lr"
    DECAYS = "decays with the weight decay"
    NOT_KEPT = "not kept at any lr"


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class OptimiserLaw:
    """An optimiser's name, how well it keeps the balance, and why."""

    name: str
    keeps: Keeps
    sentence: str


_SENTENCES = {
    Keeps.TO_SECOND_ORDER: (
        "each step changes the conserved quantity by exactly lr^2 times the same form of the gradients, "
        "so the drift over a fixed training time is of order lr"
    ),
    Keeps.TO_FIRST_ORDER: (
        "momentum moves the weights along past gradients: the drift over a fixed training time is still of order lr, "
        "but far larger than that of plain gradient descent"
    ),
    Keeps.DECAYS: "the quantity shrinks like exp(-2 g t) with weight decay g and t = lr times steps",
    Keeps.NOT_KEPT: "steps are rescaled entry by entry, which no conservation law survives, however small lr is",
}
_KINDS = {
    "gd": Keeps.TO_SECOND_ORDER,
    "sgd": Keeps.TO_SECOND_ORDER,
    "momentum": Keeps.TO_FIRST_ORDER,
    "weight_decay": Keeps.DECAYS,
    "adam": Keeps.NOT_KEPT,
}


def optimiser_law(optimiser: str | torch.optim.Optimizer) -> OptimiserLaw:
    """What an optimiser does to the balance of layer pairs.

    Args:
        optimiser: ``"gd"``, ``"sgd"``, ``"momentum"``, ``"weight_decay"`` (SGD with weight decay), ``"adam"``, or an
            optimiser of torch, whose class and settings decide.

    Raises:
        InvalidInput: an unknown name.

    Example:
        >>> optimiser_law("adam").keeps.label
        'not kept at any lr'
    """
    if isinstance(optimiser, torch.optim.Optimizer):
        return _law(type(optimiser).__name__, _kind(optimiser))
    keeps = resolve("optimiser", optimiser, _KINDS, also="an optimiser of torch")
    return _law(optimiser, keeps)


def _law(name: str, keeps: Keeps) -> OptimiserLaw:
    return OptimiserLaw(name, keeps, _SENTENCES[keeps])


def _kind(optimiser: torch.optim.Optimizer) -> Keeps:
    if not isinstance(optimiser, torch.optim.SGD):
        return Keeps.NOT_KEPT
    groups = optimiser.param_groups
    if len({group["lr"] for group in groups}) > 1:
        return Keeps.NOT_KEPT  # the law of a pair with two learning rates weighs its sides by 1 / lr
    if any(group["weight_decay"] for group in groups):
        return Keeps.DECAYS
    return Keeps.TO_FIRST_ORDER if any(group["momentum"] for group in groups) else Keeps.TO_SECOND_ORDER
