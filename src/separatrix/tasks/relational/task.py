"""What a relational task is: problems as indices of pictures, in a training and a test part."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Literal, TypeAlias, final

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import spawn
from separatrix.core.result import Result

from ..batches import AbstractBatches
from ..sequences.task import Readout, SequenceBatch, SequenceTask

Part: TypeAlias = Literal["train", "test"]
PARTS: tuple[Part, ...] = ("train", "test")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Problems(Result):
    """Problems, their answers, and the pattern each was made by."""

    index: Int[Tensor, "batch t"]
    """Pictures, as rows of the task's table."""
    label: Int[Tensor, " batch"]
    pattern: Int[Tensor, " batch"]
    """Places in ``names``."""
    names: tuple[str, ...]
    """Of all patterns of the part."""
    equal_counts: bool
    """Whether patterns occur exactly as often as their weights say; otherwise each was drawn at random."""

    def __len__(self) -> int:
        return len(self.label)


def torch_generator(generator: torch.Generator | numpy.random.Generator | None) -> torch.Generator:
    """The generator itself; one that is seeded by a number of numpy's; by default one with seed 0."""
    if generator is None:
        return spawn(0, "relational")
    if isinstance(generator, numpy.random.Generator):
        return torch.Generator().manual_seed(int(generator.integers(2**62)))
    if not isinstance(generator, torch.Generator):
        raise InvalidInput(f"generator must be one of torch or numpy; got {type(generator).__name__}.")
    return generator


class RelationalTask(SequenceTask):
    """Sequences of pictures with one answer each; some pictures are for the test alone.

    For implementers: write ``name``, ``seq_len``, ``n_answers``, ``n_pictures``, ``ids``, ``pictures`` and
    ``problems``; a frozen dataclass of plain values is the usual form, so that its ``repr`` names streams of problems.
    ``symbols`` is to be replaced where the answer depends on a part of what a picture shows (its shape and not its
    colour).

    Checked by ``tests/tasks/relational/test_relational_task_contract.py``, where yours is one line.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """As ``make_task`` knows it, or any other word."""

    @property
    @abc.abstractmethod
    def seq_len(self) -> int:
        """T, pictures of a problem."""

    @property
    @abc.abstractmethod
    def n_answers(self) -> int:
        """How many answers there are to choose from."""

    @property
    @abc.abstractmethod
    def n_pictures(self) -> int:
        """Distinct pictures of both parts."""

    @abc.abstractmethod
    def ids(self, part: Part) -> Int[Tensor, " k"]:
        """Pictures that may occur in a part."""

    @abc.abstractmethod
    def pictures(self, ids: Int[Tensor, " k"]) -> Float[Tensor, "k 3 h w"]:
        """The images behind indices; a copy."""

    @abc.abstractmethod
    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """Draw problems of a part."""

    def symbols(self, index: Int[Tensor, "*batch t"]) -> Int[Tensor, "*batch t"]:
        """What of each picture the answer depends on: two pictures are the same object if their symbols are equal."""
        return index

    @property
    def groups(self) -> tuple[int, ...]:
        """How many positions in turn belong together where people look at a problem; it means nothing to a network."""
        return (self.seq_len,)

    def marked(self, label: int) -> range:
        """Positions that an answer points to: the right choice, the right pair; none where it is a yes or no."""
        return range(0)

    @property
    def images(self) -> Float[Tensor, "n 3 h w"]:
        """All pictures; 12 kilobytes each at 32 x 32, so 120 megabytes where shapes have 100 colours each."""
        return self.pictures(torch.arange(self.n_pictures))

    @final
    def train_batch(
        self, size: int, *, generator: torch.Generator | numpy.random.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Problems of training as (index (size, T), label (size,)); the default generator has seed 0."""
        drawn = self.problems("train", size, generator=torch_generator(generator))
        return drawn.index, drawn.label

    @final
    def test_batch(
        self, size: int, *, generator: torch.Generator | numpy.random.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Problems of the test as (index (size, T), label (size,)); the default generator has seed 0."""
        drawn = self.problems("test", size, generator=torch_generator(generator))
        return drawn.index, drawn.label

    @property
    def length(self) -> int:
        """T."""
        return self.seq_len

    @property
    def n_inputs(self) -> int:
        """One: a step is the index of a picture."""
        return 1

    @property
    def n_outputs(self) -> int:
        """Answers to choose from."""
        return self.n_answers

    @property
    def baseline(self) -> float:
        """The cross entropy of guessing: answers are equally frequent."""
        return math.log(self.n_answers)

    @property
    def readout(self) -> Readout:
        """Only after the last picture."""
        return "last"

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems of training as a sequence task: indices, answers, and that every step counts."""
        drawn = self.problems("train", n, generator=generator)
        return SequenceBatch(drawn.index, drawn.label, torch.arange(self.seq_len).repeat(n, 1))

    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Mean cross entropy."""
        self.require_outputs(outputs, batch)
        return functional.cross_entropy(outputs, batch.targets)

    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Share of right answers."""
        self.require_outputs(outputs, batch)
        return (outputs.argmax(-1) == batch.targets).to(outputs.dtype).mean()


@final
@suggest_options
class ProblemBatches(AbstractBatches[Problems]):
    """Fresh problems of a part at every step, the same whenever a step is asked for.

    Args:
        task: what is drawn.
        size: problems in a batch.
        seed: with the task and the part, names the stream.
        part: ``"train"`` or ``"test"``.

    Example:
        >>> from separatrix.tasks import make_task
        >>> ProblemBatches(make_task("same_diff"), 4, 0)(7).index.shape
        torch.Size([4, 2])
    """

    def __init__(self, task: RelationalTask, size: int, seed: int, part: Part = "train") -> None:
        if not isinstance(task, RelationalTask):
            raise InvalidInput(f"task must be a RelationalTask; got {type(task).__name__}.")
        choose("part", part, PARTS)
        self.task, self.size, self.part = task, require_integer(size, "size", at_least=1), part
        spawn(seed)
        self._seed = seed

    @property
    def per_epoch(self) -> int:
        """One: nothing is shown twice."""
        return 1

    def batch_at(self, step: int) -> Problems:
        """The problems of a step."""
        stream = spawn(self._seed, "relational", repr(self.task), self.part, "step", step)
        return self.task.problems(self.part, self.size, generator=stream)


def equal_pairs(symbols: Int[Tensor, "*batch t"]) -> Bool[Tensor, "*batch t t"]:
    """Which positions of a problem hold the same object: the ideal relation of tasks about sameness."""
    return symbols.unsqueeze(-1) == symbols.unsqueeze(-2)
