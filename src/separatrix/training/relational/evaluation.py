"""How many problems a network answers rightly, in all and by pattern."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.networks.modes import evaluation_mode
from separatrix.core.random import spawn
from separatrix.core.result import Result
from separatrix.nn.relational.network import AbstractRelationalNetwork
from separatrix.tasks.relational.game_files import PictureProblems
from separatrix.tasks.relational.task import Part, Problems, RelationalTask

from .pictures import distinct_pictures

CHUNK = 500
"""Problems answered at once: a decoder with 285,313 hidden units takes half a gigabyte for them."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Answers(Result):
    """Right answers among so many problems."""

    accuracy: float
    n_problems: int
    low: float
    """Lower end of Wilson's 95 % interval, for the problems drawn; seeds vary more."""
    high: float
    loss: float
    by_pattern: dict[str, float]
    """Accuracy on the problems of each pattern, where patterns are known."""


def evaluate_relational(
    network: nn.Module,
    task: RelationalTask | PictureProblems,
    n_problems: int = 10_000,
    *,
    part: Part = "test",
    generator: torch.Generator | None = None,
) -> Answers:
    """Accuracy on problems of a part, or on given problems.

    Distinct pictures are encoded once; then there is only index arithmetic.

    Args:
        network: called with images and index.
        task: where problems come from, or the problems themselves (of a public file, say).
        n_problems: how many are drawn; given problems are all used.
        part: ``"test"`` or ``"train"``.
        generator: by default one with seed 0.

    Cost: one encoding of each picture of the part, then the network on ``n_problems`` problems, 500 at once.
    """
    if isinstance(task, PictureProblems):
        return answers_of(network, task.images, task.index, task.label, None)
    if not isinstance(task, RelationalTask):
        raise InvalidInput(f"task must be a RelationalTask or PictureProblems; got {type(task).__name__}.")
    require_integer(n_problems, "n_problems", at_least=1)
    stream = spawn(0, "relational", "evaluation") if generator is None else generator
    problems = task.problems(part, n_problems, generator=stream)
    return evaluate_problems(network, task, problems)


def evaluate_problems(network: nn.Module, task: RelationalTask, problems: Problems) -> Answers:
    """Accuracy on problems that were drawn before."""
    images, index = distinct_pictures(task, problems.index)
    return answers_of(network, images, index, problems.label, problems)


def answers_of(network: Any, images: Tensor, index: Tensor, label: Tensor, problems: Problems | None) -> Answers:
    """Accuracy, loss and patterns of the answers to problems whose images are at hand."""
    with evaluation_mode(network), torch.no_grad():
        if isinstance(network, AbstractRelationalNetwork) and images.ndim == 4:
            images = torch.cat([network.features(some) for some in images.split(CHUNK)])
        logits = torch.cat([network(images, some) for some in index.split(CHUNK)])
    require_logits(logits, label)
    right = logits.argmax(-1) == label
    accuracy, n = float(right.double().mean()), len(label)
    low, high = wilson(accuracy, n)
    loss = float(nn.functional.cross_entropy(logits, label))
    by_pattern = {} if problems is None else _by_pattern(right, problems)
    return Answers(accuracy, n, low, high, loss, by_pattern)


def require_logits(logits: Any, label: Tensor) -> None:
    """A row of logits for every problem, with a place for every answer."""
    most = int(label.max()) + 1
    if not isinstance(logits, Tensor):
        raise InvalidInput(f"network must give logits, a tensor; got {type(logits).__name__}.")
    if logits.ndim != 2 or len(logits) != len(label) or logits.shape[1] < most:
        raise ShapeError(
            f"network must give logits ({len(label)}, answers) with at least {most} answers; got {tuple(logits.shape)}."
        )


def _by_pattern(right: Tensor, problems: Problems) -> dict[str, float]:
    n = len(problems.names)
    total = torch.bincount(problems.pattern, minlength=n)
    hits = torch.bincount(problems.pattern, weights=right.double(), minlength=n)
    found = (hits / total.clamp_min(1)).tolist()
    return {name: share for name, share, count in zip(problems.names, found, total.tolist(), strict=True) if count}


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n.

    Example:
        >>> [round(end, 3) for end in wilson(1.0, 100)]
        [0.963, 1.0]
    """
    z = 1.959963984540054
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def area_under_curve(scores: Float[Tensor, " n"], positive: Tensor) -> float:
    """Probability that a positive scores higher than a negative, ties counted by half; NaN without both kinds."""
    _, inverse, counts = scores.unique(return_inverse=True, return_counts=True)
    upper = counts.cumsum(0).double()
    ranks = (upper - (counts - 1) / 2)[inverse]
    n_positive = int(positive.sum())
    n_negative = len(scores) - n_positive
    if not n_positive or not n_negative:
        return math.nan
    return float((ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
