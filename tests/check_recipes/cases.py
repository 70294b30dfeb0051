"""A case: a model with its batch, and the fault that was planted in it, if any."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


@dataclasses.dataclass
class Case:
    model: nn.Module
    sample: Any
    loss: Any = "cross_entropy"
    target: Any = None
    optimizer: torch.optim.Optimizer | None = None
    output: Callable[[Any], Tensor] | None = None


@dataclasses.dataclass(frozen=True)
class Recipe:
    name: str
    architecture: str
    build: Callable[[], Case]
    fault: str | None = None
    """Name of the finding that must appear as warning or fault; None for a healthy model."""

    def case(self, seed: int) -> Case:
        """Built from a seed; widths, depths and data are drawn from it. Global random numbers stay as they were."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1000 * seed + sum(map(ord, self.name)))
            return self.build()


RECIPES: dict[str, Recipe] = {}


def recipe(architecture: str, fault: str | None = None, name: str = "") -> Callable[[Callable[[], Case]], Any]:
    def register(build: Callable[[], Case]) -> Callable[[], Case]:
        key = name or build.__name__
        assert key not in RECIPES, key
        RECIPES[key] = Recipe(key, architecture, build, fault)
        return build

    return register


def pick(low: int, high: int) -> int:
    """A whole number in [low, high]."""
    return int(torch.randint(low, high + 1, ()))


def vectors(n: int = 48, width: int = 20) -> Tensor:
    return torch.randn(n, width)


def images(n: int = 24, channels: int = 3, size: int = 12) -> Tensor:
    return torch.randn(n, channels, size, size)


def sequences(n: int = 24, length: int = 24, width: int = 8) -> Tensor:
    return torch.randn(n, length, width)


def tokens(n: int = 12, length: int = 18, vocabulary: int = 40) -> Tensor:
    return torch.randint(0, vocabulary, (n, length))


def labels(n: int, classes: int) -> Tensor:
    return torch.randint(0, classes, (n,))


def sgd(model: nn.Module, lr: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr)


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def classified(model: nn.Module, x: Tensor, classes: int, *, optimizer: bool = True) -> Case:
    rates = adam(model) if pick(0, 1) else sgd(model)
    return Case(model, x, "cross_entropy", labels(len(x), classes), rates if optimizer else None)


def language(model: nn.Module, x: Tensor, vocabulary: int = 40) -> Case:
    return Case(model, x, "cross_entropy", torch.randint(0, vocabulary, x.shape), adam(model, 3e-4))
