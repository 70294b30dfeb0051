"""All problems of a pattern task, how many there are, and the fixed sets of the finite protocol."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose
from separatrix.core.random import spawn
from separatrix.core.result import Result

from .cognitive import PatternTask
from .patterns import Design, Pattern
from .task import PARTS, Part, Problems

MOST = 2_000_000
"""Problems that are listed at once."""
LISTED = 20_000
"""A set of at most so many problems is cut from the list of all; a larger one is drawn."""
CAP = 10_000
"""Problems of a fixed training or test set."""
EPOCHS = {
    "same_diff": {0: 50, 50: 50, 85: 50, 95: 100, 98: 100},
    "rmts": {0: 50, 50: 50, 85: 50, 95: 200},
    "dist3": {0: 50, 50: 50, 85: 50, 95: 150},
    "identity_rules": {0: 50, 50: 50, 85: 50, 95: 50},
}
"""By task and number of held-out shapes, epochs of the finite protocol."""


def count_problems(
    design: Design, n_shapes: int, *, part: Part = "train", balanced: bool = False, choices: bool = True
) -> int:
    """How many problems a design has with so many shapes.

    Args:
        design: the patterns.
        n_shapes: s, from which objects are taken.
        part: whose patterns.
        balanced: count a problem as often as it stands in a set in which patterns occur by their weights and every
            object takes every place: ``s! / (s - k)!`` for each unit of weight, k objects. Otherwise distinct problems.
        choices: whether the order of the choices and objects that occur only there make a difference.

    Source: the sizes that are usually named for dist3 (360 at s = 5) leave choices out, those for identity rules
    (8,640) have them in and are balanced.

    Example:
        >>> from separatrix.tasks import find_design
        >>> count_problems(find_design("dist3"), 5, choices=False), count_problems(find_design("dist3"), 5)
        (360, 17280)
    """
    require_integer(n_shapes, "n_shapes", at_least=1)
    choose("part", part, PARTS)
    if balanced:
        weight = sum(pattern.weight for pattern in design.patterns(part))
        orders = math.factorial(design.choices) if choices else 1
        return weight * orders * math.perm(n_shapes, design.n_objects(part))
    return sum(_distinct(design, pattern, n_shapes, choices) for pattern in design.patterns(part))


def _distinct(design: Design, pattern: Pattern, s: int, choices: bool) -> int:
    shown = len(set(pattern.letters))
    if s < max(shown, design.choices):
        return 0
    ordered = math.perm(s, shown)
    if not (choices and design.choices):
        return ordered
    return ordered * math.comb(s - shown, design.choices - shown) * math.factorial(design.choices)


def all_problems(task: PatternTask, part: Part = "train", *, distinct: bool = True) -> Problems:
    """Every problem of a part: each once, or each as often as in the balanced set (see ``count_problems``).

    Raises:
        InvalidInput: there are more than two million.
    """
    if not isinstance(task, PatternTask):
        raise InvalidInput(f"task must be a PatternTask; got {type(task).__name__}.")
    plan, ids = task.plan, task.ids(part)
    n = count_problems(plan, len(ids), part=part, balanced=True)
    if n > MOST:
        raise InvalidInput(f"{task.name} has {n} problems in {part}; at most {MOST} are listed. Hold out more shapes.")
    tuples = ids[torch.tensor(list(itertools.permutations(range(len(ids)), plan.n_objects(part))))]
    orders = torch.tensor(list(itertools.permutations(range(plan.choices)))) if plan.choices else None
    parts = [_of_pattern(one, place, tuples, orders, distinct) for place, one in enumerate(plan.patterns(part))]
    index, label, pattern = (torch.cat(group) for group in zip(*parts, strict=True))
    names = tuple(one.name for one in plan.patterns(part))
    return Problems(index, label, pattern, names, not distinct)


def _of_pattern(
    pattern: Pattern, place: int, tuples: Tensor, orders: Tensor | None, distinct: bool
) -> tuple[Tensor, Tensor, Tensor]:
    index = tuples[:, list(pattern.letters)]
    label = torch.full((len(index),), pattern.answer)
    if orders is not None:
        right = (orders == pattern.answer).to(torch.int64).argmax(1)
        offered = tuples[:, orders]  # (tuples, orders, choices)
        rows = index.unsqueeze(1).expand(-1, len(orders), -1)
        index, label = torch.cat([rows, offered], -1).flatten(0, 1), right.repeat(len(tuples))
    if distinct:
        both = torch.cat([index, label.unsqueeze(1)], 1).unique(dim=0)
        index, label = both[:, :-1], both[:, -1]
    elif pattern.weight > 1:
        index, label = index.repeat(pattern.weight, 1), label.repeat(pattern.weight)
    return index, label, torch.full((len(label),), place)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class FiniteProblems(Result):
    """The fixed sets of the finite protocol."""

    train_index: Int[Tensor, "p t"]
    train_label: Int[Tensor, " p"]
    test_index: Int[Tensor, "q t"]
    test_label: Int[Tensor, " q"]
    n_epochs: int


def finite_problems(task: PatternTask, seed: int = 0) -> FiniteProblems:
    """Training and test sets of at most 10,000 problems each, drawn once; all of a small space, patterns in balance.

    With held-out shapes a part with at most 10,000 balanced problems is taken whole. Without, both parts share the
    shapes, so 20,000 different problems are drawn and halved; same/different, which has fewer, is cut 95 : 5.

    Source: the protocol of the ESBN work, which kerg2022 refers to; epochs by ``EPOCHS``, else 50.
    """
    if not isinstance(task, PatternTask):
        raise InvalidInput(f"task must be a PatternTask; got {type(task).__name__}.")
    stream = spawn(seed, "relational", repr(task), "finite")
    if task.holdout:
        sets = [_fixed_set(task, part, stream) for part in PARTS]
    else:
        sets = _shared_sets(task, stream)
    (train_index, train_label), (test_index, test_label) = sets
    epochs = EPOCHS.get(task.name, {}).get(task.holdout, 50)
    return FiniteProblems(train_index, train_label, test_index, test_label, epochs)


def _fixed_set(task: PatternTask, part: Part, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    if count_problems(task.plan, len(task.ids(part)), part=part, balanced=True) <= LISTED:
        found = all_problems(task, part, distinct=False)
        chosen = torch.randperm(len(found), generator=stream)[:CAP]
        return found.index[chosen], found.label[chosen]
    drawn = _different(task, part, CAP, stream)
    return drawn[:, :-1], drawn[:, -1]


def _shared_sets(task: PatternTask, stream: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    n = count_problems(task.plan, len(task.ids("train")), balanced=True)
    if n < 2 * CAP:
        whole = all_problems(task, "train", distinct=False)
        rows = torch.cat([whole.index, whole.label.unsqueeze(1)], 1)
        n_train = round(0.95 * len(rows))
        order = torch.randperm(len(rows), generator=stream)
        halves = [rows[order[:n_train]], rows[order[n_train:]]]
    else:
        rows = _different(task, "train", 2 * CAP, stream)
        halves = [rows[:CAP], rows[CAP:]]
        if task.plan.train != task.plan.test:
            halves[1] = _different(task, "test", CAP, stream)
    return [(half[:, :-1], half[:, -1]) for half in halves]


def _different(task: PatternTask, part: Part, n: int, stream: torch.Generator) -> Tensor:
    """As many different problems, or as nearly so many as a few draws find, with their label as last column."""
    found = torch.empty(0, task.seq_len + 1, dtype=torch.int64)
    for _ in range(20):
        drawn = task.problems(part, n, generator=stream)
        found = torch.cat([found, torch.cat([drawn.index, drawn.label.unsqueeze(1)], 1)]).unique(dim=0)
        if len(found) >= n:
            break
    return found[torch.randperm(len(found), generator=stream)[:n]]
