"""What a sequence task is: problems made in code, the loss of an answer, and what can be had without memory."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn, stream_seed
from separatrix.core.result import Result

from ..batches import AbstractBatches

Readout: TypeAlias = Literal["steps", "last"]
"""Where a task wants an answer: at every step, or after the last one."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class SequenceBatch(Result):
    """Problems and their answers; the first axis is the batch."""

    inputs: Tensor
    """(batch, time, features), or indices (batch, time)."""
    targets: Tensor
    """(batch, time) if an answer is wanted at every step, else (batch, ...)."""
    oracle: Int[Tensor, "batch k"]
    """Steps whose input the answer depends on, for comparison with what a model attends to."""

    def __len__(self) -> int:
        return self.inputs.shape[0]


class SequenceTask(Described, abc.ABC):
    """Problems that are made anew for every batch.

    For implementers: write ``sample``, ``loss``, ``accuracy`` and the properties; a frozen dataclass of plain numbers
    is the usual form, so that two tasks with equal arguments are equal and their ``repr`` names the stream of
    ``StreamedBatches``. ``sample`` draws from its generator alone and hands out tensors that its user may change.

    Checked by ``tests/tasks/sequences/test_sequence_task_contract.py``, where yours is one line.
    """

    @property
    @abc.abstractmethod
    def length(self) -> int:
        """Steps of a sequence."""

    @property
    @abc.abstractmethod
    def n_inputs(self) -> int:
        """Features of a step."""

    @property
    @abc.abstractmethod
    def n_outputs(self) -> int:
        """Numbers in an answer: classes, or quantities."""

    @property
    @abc.abstractmethod
    def baseline(self) -> float:
        """The least expected loss of a model that remembers nothing."""

    @property
    def readout(self) -> Readout:
        """Where an answer is wanted; at every step unless a task says otherwise."""
        return "steps"

    @abc.abstractmethod
    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems."""

    @abc.abstractmethod
    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """The mean loss of answers: (batch, time, n_outputs), or (batch, n_outputs) if only the last counts."""

    @abc.abstractmethod
    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """The share of right answers among those that need memory."""

    @final
    def require_outputs(self, outputs: Tensor, batch: SequenceBatch) -> None:
        """Refuse answers of the wrong shape."""
        steps = (self.length,) if self.readout == "steps" else ()
        expected = (len(batch), *steps, self.n_outputs)
        if tuple(outputs.shape) != expected:
            raise ShapeError(f"outputs must have shape {expected}; got {tuple(outputs.shape)}.")


@final
@suggest_options
class StreamedBatches(AbstractBatches[SequenceBatch]):
    """Fresh problems at every step, the same whenever a step is asked for.

    Args:
        task: what is drawn.
        size: problems in a batch.
        seed: with the task and ``path``, names the stream.
        path: further names of the stream, such as ``"test"`` for problems that are not those of training.

    Example:
        >>> from separatrix.tasks import Copy
        >>> batches = StreamedBatches(Copy(delay=5), 3, 0)
        >>> batches(7).inputs.shape
        torch.Size([3, 25, 10])
    """

    def __init__(self, task: SequenceTask, size: int, seed: int, *path: str | int) -> None:
        if not isinstance(task, SequenceTask):
            raise InvalidInput(f"task must be a SequenceTask; got {type(task).__name__}.")
        self.task = task
        self.size = require_integer(size, "size", at_least=1)
        stream_seed(seed)  # refuses what is no seed, now rather than at the first step
        self._stream = (seed, repr(task), *path)

    def made_of(self) -> Mapping[str, Any]:
        """The seed, which is kept with the path of the stream."""
        return {"seed": self._stream[0]}

    @property
    def per_epoch(self) -> int:
        """One: nothing is shown twice."""
        return 1

    def batch_at(self, step: int) -> SequenceBatch:
        """The problems of a step."""
        seed, *path = self._stream
        return self.task.sample(self.size, generator=spawn(int(seed), *path, "step", step))
