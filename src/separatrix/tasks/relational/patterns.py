"""Patterns: problems as words over distinct objects, how often each occurs, and drawing many at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Pattern:
    """One kind of problem.

    Args:
        name: what it is called where accuracies are told by pattern.
        letters: the object at each position, as a number of a list of distinct objects; without the choices.
        answer: the label, or, in a task with choices, the object that is right.
        weight: how often it occurs among the patterns of its part.
    """

    name: str
    letters: tuple[int, ...]
    answer: int
    weight: int = 1


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Design:
    """The patterns of a task in training and in the test.

    Args:
        name: of the task.
        n_answers: how many answers there are.
        train: patterns of training.
        test: patterns of the test.
        choices: how many objects are offered after the patterns, in random order; 0 for none.
        extreme: the largest number of held-out shapes, of 100, that the source uses.
        batch: problems in a batch of the source.
        rows: how many positions in turn belong together where people look at a problem, without the choices.
    """

    name: str
    n_answers: int
    train: tuple[Pattern, ...]
    test: tuple[Pattern, ...]
    choices: int
    extreme: int
    batch: int
    rows: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for part, patterns in (("train", self.train), ("test", self.test)):
            if not patterns:
                raise InvalidInput(f"{part} of design {self.name!r} must hold at least one pattern.")
            for pattern in patterns:
                self._check(part, pattern)

    def _check(self, part: str, pattern: Pattern) -> None:
        where = f"pattern {pattern.name!r} of {part} of design {self.name!r}"
        n = len(self.train[0].letters)
        if not pattern.letters or len(pattern.letters) != n or min(pattern.letters) < 0:
            raise InvalidInput(f"{where} must have {n} letters, numbers of objects from 0; got {pattern.letters}.")
        most = self.choices or self.n_answers
        if not 0 <= pattern.answer < most:
            kind = "one of the objects that are offered" if self.choices else "a label"
            raise InvalidInput(f"the answer of {where} must be {kind}, 0 to {most - 1}; got {pattern.answer}.")
        require_integer(pattern.weight, f"the weight of {where}", at_least=1)

    @property
    def groups(self) -> tuple[int, ...]:
        """The rows, and the choices behind them."""
        rows = self.rows or (len(self.train[0].letters),)
        return (*rows, self.choices) if self.choices else rows

    def marked(self, label: int) -> range:
        """Positions that an answer points to: a choice, or the group behind the source where there is one for each."""
        if self.choices:
            place = self.seq_len - self.choices + label
            return range(place, place + 1)
        if len(self.groups) == self.n_answers + 1:
            start = sum(self.groups[: label + 1])
            return range(start, start + self.groups[label + 1])
        return range(0)

    @property
    def seq_len(self) -> int:
        """Positions of a problem, choices included."""
        return len(self.train[0].letters) + self.choices

    def patterns(self, part: str) -> tuple[Pattern, ...]:
        """Of one part."""
        return self.train if part == "train" else self.test

    def n_objects(self, part: str) -> int:
        """Distinct objects that a problem of a part may need; the least number of shapes of the part."""
        return max(self.choices, *(max(pattern.letters) + 1 for pattern in self.patterns(part)))


def draw_patterns(
    weights: Sequence[int], size: int, *, generator: torch.Generator
) -> tuple[Int[Tensor, " batch"], bool]:
    """Pattern numbers of a batch in random order, and whether each occurs exactly as often as its weight says.

    Where the size is no multiple of the sum of weights, each problem draws its pattern for itself.
    """
    require_integer(size, "size", at_least=1)
    counts = torch.tensor(weights)
    total = int(counts.sum())
    if size % total == 0:
        ordered = torch.arange(len(counts)).repeat_interleave(counts * (size // total))
        return ordered[torch.randperm(size, generator=generator)], True
    return torch.multinomial(counts.double(), size, replacement=True, generator=generator), False


def distinct_objects(
    size: int, k: int, ids: Int[Tensor, " s"], *, generator: torch.Generator
) -> Int[Tensor, "batch k"]:
    """For each problem k different objects in random order.

    Cost: a random number per object and problem.
    """
    if k > len(ids):
        raise InvalidInput(f"{k} different objects are needed, and there are {len(ids)}.")
    chosen = torch.rand(size, len(ids), generator=generator).argsort(1)[:, :k]
    return ids[chosen]


def fill(
    patterns: Sequence[Pattern],
    pattern: Int[Tensor, " batch"],
    objects: Int[Tensor, "batch k"],
    choices: int,
    *,
    generator: torch.Generator,
) -> tuple[Int[Tensor, "batch t"], Int[Tensor, " batch"]]:
    """Objects put where the letters of each problem's pattern say, choices shuffled behind them, and the labels."""
    letters = torch.tensor([one.letters for one in patterns])[pattern]
    answer = torch.tensor([one.answer for one in patterns])[pattern]
    index = objects.gather(1, letters)
    if not choices:
        return index, answer
    order = torch.rand(len(pattern), choices, generator=generator).argsort(1)
    label = (order == answer.unsqueeze(1)).to(torch.int64).argmax(1)
    return torch.cat([index, objects.gather(1, order)], dim=1), label
