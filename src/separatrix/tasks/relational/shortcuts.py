"""Answers that need no understanding: rules of thumb whose accuracy tells how much of a task they are worth."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from separatrix.core.arithmetic.linear_systems import solve
from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.random import spawn
from separatrix.core.result import Result, frame

from .task import Problems, RelationalTask, equal_pairs

ONE_BY_ONE = "pictures one by one"
FITTED = 1500
"""Problems from which single pictures are judged."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Shortcuts(Result):
    """By rule of thumb, the share of right test answers of the best way to answer by it."""

    task: str
    accuracy: dict[str, float]
    chance: float
    n_problems: int

    @property
    def best(self) -> tuple[str, float]:
        """The rule that goes farthest, and how far."""
        name = max(self.accuracy, key=lambda rule: self.accuracy[rule])
        return name, self.accuracy[name]

    def to_frame(self):  # type: ignore[no-untyped-def]
        """A row per rule."""
        return frame({"rule": list(self.accuracy), "accuracy": list(self.accuracy.values())})


def shortcut_accuracy(
    task: RelationalTask, n_problems: int = 10_000, *, generator: torch.Generator | None = None
) -> Shortcuts:
    """How far rules of thumb go: majority, some two objects equal, first equals last, number of equal pairs.

    A rule sorts problems into groups by something it sees; the answer to a group is its most frequent label in
    training problems. Blank cells of games, which every board has, are not objects. One rule more looks at pictures
    and at no two of them together: what each shows, coarsely and linearly, is added up.

    Args:
        task: whose problems.
        n_problems: drawn of each part.
        generator: by default one with seed 0.

    Example:
        >>> from separatrix.tasks import make_task
        >>> shortcut_accuracy(make_task("game_between"), 2000).accuracy["some two equal"] > 0.99
        True
    """
    if not isinstance(task, RelationalTask):
        raise InvalidInput(f"task must be a RelationalTask; got {type(task).__name__}.")
    require_integer(n_problems, "n_problems", at_least=1)
    stream = spawn(0, "relational", "shortcuts") if generator is None else generator
    train = task.problems("train", n_problems, generator=stream)
    test = task.problems("test", n_problems, generator=stream)
    groups = {name: (rule(task, train.index), rule(task, test.index)) for name, rule in _RULES.items()}
    accuracy = {
        name: _best_by_group(seen, train.label, asked, test.label, task.n_answers)
        for name, (seen, asked) in groups.items()
    }
    accuracy[ONE_BY_ONE] = _one_by_one(task, train, test)
    return Shortcuts(task.name, accuracy, 1 / task.n_answers, n_problems)


def _one_by_one(task: RelationalTask, train: Problems, test: Problems) -> float:
    """Test accuracy of a sum of linear functions of single pictures, fitted to training problems by least squares.

    Few pictures stand in many problems, so products and answers are made once for a picture and looked up.
    """
    label = train.label[:FITTED]
    table, places = _coarse(task, train.index[:FITTED])
    target = functional.one_hot(label, task.n_answers).to(table.dtype)
    start = target.mean(0)
    means = [table[place].mean(0) for place in places]
    products = table.new_zeros(len(label), len(label))  # fewer problems than points
    for place, mean in zip(places, means, strict=True):
        some, which = place.unique(return_inverse=True)
        shown = table[some] - mean
        products += (shown @ shown.mT)[which][:, which]
    ridge = 1e-6 * float(products.diagonal().mean()) + 1e-12
    share = solve(products + ridge * torch.eye(len(products), dtype=table.dtype), target - start)
    weights = [
        (table - mean).mT @ table.new_zeros(len(table), task.n_answers).index_add_(0, place, share)
        for place, mean in zip(places, means, strict=True)
    ]
    right = []
    for index, answer in zip(test.index.split(FITTED), test.label.split(FITTED), strict=True):
        pictures, where = _coarse(task, index)
        parts = [((pictures - mean) @ own)[place] for place, mean, own in zip(where, means, weights, strict=True)]
        right.append((start + torch.stack(parts).sum(0)).argmax(1) == answer)
    return float(torch.cat(right).to(torch.float64).mean())


def _coarse(task: RelationalTask, index: Tensor) -> tuple[Tensor, Tensor]:
    """Of every picture a grey one of 16 x 16 points and mean, brightest and darkest value by channel; by position and
    problem, which picture stands there."""
    ids, places = index.unique(return_inverse=True)
    parts = []
    for some in ids.split(FITTED):
        images = task.pictures(some)
        points = functional.adaptive_avg_pool2d(images.mean(1, keepdim=True), 16).flatten(1)
        parts.append(torch.cat([points, images.mean((2, 3)), images.amax((2, 3)), images.amin((2, 3))], 1))
    return torch.cat(parts).to(torch.float64), places.mT.contiguous()


def _best_by_group(seen: Tensor, label: Tensor, asked: Tensor, right: Tensor, n_answers: int) -> float:
    n_groups = int(torch.maximum(seen.max(), asked.max())) + 1
    counts = torch.zeros(n_groups, n_answers)
    counts.index_put_((seen, label), torch.ones(len(seen)), accumulate=True)
    return float((counts.argmax(1)[asked] == right).to(torch.float64).mean())


def object_pairs(task: RelationalTask, index: Int[Tensor, "batch t"]) -> Bool[Tensor, "batch t t"]:
    """Which two different positions hold the same object; blank cells of a game hold none."""
    equal = equal_pairs(task.symbols(index))
    if task.name.startswith("game_"):
        thing = index > 0
        equal = equal & thing.unsqueeze(1) & thing.unsqueeze(2)
    return equal & ~torch.eye(index.shape[1], dtype=torch.bool)


def _majority(task: RelationalTask, index: Tensor) -> Tensor:
    return torch.zeros(len(index), dtype=torch.int64)


def _some_two(task: RelationalTask, index: Tensor) -> Tensor:
    return object_pairs(task, index).flatten(1).any(1).long()


def _first_last(task: RelationalTask, index: Tensor) -> Tensor:
    symbols = task.symbols(index)
    if task.name.startswith("game_"):
        thing = (index > 0).to(torch.int64)
        last = index.shape[1] - 1 - thing.flip(1).argmax(1)
        ends = torch.stack([thing.argmax(1), last], 1)
        symbols = symbols.gather(1, ends)
    return (symbols[:, 0] == symbols[:, -1]).long()


def _n_pairs(task: RelationalTask, index: Tensor) -> Tensor:
    return torch.div(object_pairs(task, index).flatten(1).sum(1), 2, rounding_mode="floor")


_RULES = {
    "majority": _majority,
    "some two equal": _some_two,
    "first equals last": _first_last,
    "number of equal pairs": _n_pairs,
}


def ideal_relations(task: RelationalTask, index: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t t"]:
    """1 where two positions hold the same object, 0 elsewhere."""
    return equal_pairs(task.symbols(index)).to(torch.float32)
