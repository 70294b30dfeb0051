"""What one arm of a pair trains, and how: a model, data, a loss and an optimiser; the same for both arms."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from separatrix.core import stream_seed

Optimiser: TypeAlias = Callable[[Any], torch.optim.Optimizer]
Data: TypeAlias = tuple[Tensor, Tensor]


def class_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """Cross entropy of scores on the last axis."""
    return nn.functional.cross_entropy(prediction.flatten(0, -2), target.flatten())


def share_right(prediction: Tensor, target: Tensor) -> float:
    """Share of positions whose largest score is that of the target; scores that are not finite count as wrong."""
    right = (prediction.argmax(-1) == target) & torch.isfinite(prediction).all(-1)
    return float(right.double().mean())


@dataclasses.dataclass
class Lesson:
    """One arm of a pair."""

    model: nn.Module
    train: Data
    test: Data
    optimiser: Optimiser
    n_steps: int = 150
    batch: int = 64
    loss: Callable[[Tensor, Tensor], Tensor] = class_loss
    score: Callable[[nn.Module, Tensor, Tensor], float] = lambda model, x, y: share_right(model(x), y)
    checked_mode: str = "train"
    """In which mode the model is when it is checked."""
    checked: Data | None = None
    """What it is checked on, if not the first samples of ``train``."""


def sgd(lr: float) -> Optimiser:
    """Plain gradient descent."""
    return lambda model: torch.optim.SGD(model.parameters(), lr=lr)


def adam(lr: float) -> Optimiser:
    """Adam with the usual moments."""
    return lambda model: torch.optim.Adam(model.parameters(), lr=lr)


@contextlib.contextmanager
def drawn_from(seed: int, purpose: str) -> Iterator[None]:
    """Layers of torch draw their start from the global stream: inside it is that of ``seed``, outside untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(seed, "check-advice", purpose))
        yield


def teach(lesson: Lesson, seed: int) -> dict[str, Any]:
    """Train with batches drawn from ``seed`` and test. A loss that is not finite ends the training as diverged.

    Cost: ``n_steps`` forwards and backwards of one batch.
    """
    x, y = lesson.train
    order = torch.Generator().manual_seed(stream_seed(seed, "check-advice", "batches"))
    optimiser, diverged, last = lesson.optimiser(lesson.model), False, math.nan
    lesson.model.train()
    with drawn_from(seed, "training"):
        for _ in range(lesson.n_steps):
            rows = torch.randint(len(x), (min(lesson.batch, len(x)),), generator=order)
            optimiser.zero_grad()
            loss = lesson.loss(lesson.model(x[rows]), y[rows])
            last = float(loss.detach())
            if not math.isfinite(last):
                diverged = True
                break
            if loss.requires_grad:
                loss.backward()
                optimiser.step()
        lesson.model.eval()
        with torch.no_grad():
            accuracy = lesson.score(lesson.model, *lesson.test)
    return {"accuracy": accuracy, "loss": last, "diverged": diverged}
