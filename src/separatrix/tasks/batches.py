"""The batch of any step, as a function of the step: a run that is resumed needs no other position in the data."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn

Batch = TypeVar("Batch", covariant=True)


class AbstractBatches(Described, abc.ABC, Generic[Batch]):
    """The batch of any step; ``training.train`` takes such an object as its ``batch_at``.

    For implementers: write ``batch_at(step)`` and the property ``per_epoch``.

    - ``batch_at`` is a function of the step alone: the same batch whenever and in whatever order it is asked for, also
      from a second object made with the same arguments. Random numbers of a step come from
      ``core.spawn(seed, ..., step)``, never from a generator that is carried along. A batch may be changed in place by
      its user, so hand out no view of what you keep.
    - ``per_epoch`` is the number of steps after which everything was shown once; 1 for data made anew at every step.

    Checked by ``tests/tasks/test_task_contract.py``, where yours is one line.
    """

    @property
    @abc.abstractmethod
    def per_epoch(self) -> int:
        """Batches in an epoch."""

    @abc.abstractmethod
    def batch_at(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""

    @final
    def __call__(self, step: int) -> Batch:
        """The batch of a step; a step that is no natural number is refused."""
        return self.batch_at(require_integer(step, "step", at_least=0))


@final
@suggest_options
class ShuffledBatches(AbstractBatches[Tensor]):
    """Indices of the items of each batch; every epoch is a permutation of its own, what is left over is dropped.

    Args:
        n_items: size of the data set.
        batch_size: items in a batch.
        seed: with ``path``, names the stream the permutations come from.
        path: further names of the stream.

    Example:
        >>> batches = ShuffledBatches(10, 5, 0, "example")
        >>> sorted([*batches(0).tolist(), *batches(1).tolist()])
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(self, n_items: int, batch_size: int, seed: int, *path: str | int) -> None:
        self.n_items = require_integer(n_items, "n_items", at_least=1)
        self.batch_size = require_integer(batch_size, "batch_size", at_least=1)
        if batch_size > n_items:
            raise InvalidInput(f"batch_size must be at most n_items = {n_items}; got {batch_size}.")
        self._stream = (seed, *path)
        self._epoch = -1
        self._order = torch.empty(0, dtype=torch.int64)

    def made_of(self) -> Mapping[str, Any]:
        """The seed, which is kept with the path of the stream."""
        return {"seed": self._stream[0]}

    @property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        return self.n_items // self.batch_size

    def batch_at(self, step: int) -> Int[Tensor, " batch"]:
        """The indices of the batch of a step."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            seed, *path = self._stream
            generator = spawn(int(seed), *path, "epoch", epoch)
            self._order, self._epoch = torch.randperm(self.n_items, generator=generator), epoch
        return self._order[place * self.batch_size : (place + 1) * self.batch_size].clone()


@final
@suggest_options
class ContiguousBatches(AbstractBatches[tuple[Tensor, Tensor]]):
    """Windows of a long sequence: it is cut into ``batch_size`` rows, and each step reads the next window of every row.

    Step k and step k + 1 are neighbours in every row, so a model may carry its state along. After the last whole window
    the rows are read again from the start, shifted by ``shift`` symbols an epoch, so that windows fall differently.

    Args:
        symbols: the sequence.
        batch_size: number of rows.
        context: symbols in a window; the targets are the same window one symbol later.
        shift: by how much the start moves from one epoch to the next; 0 repeats the same windows.

    Example:
        >>> inputs, targets = ContiguousBatches(torch.arange(20), 2, 4)(1)
        >>> inputs.tolist(), targets.tolist()
        ([[4, 5, 6, 7], [14, 15, 16, 17]], [[5, 6, 7, 8], [15, 16, 17, 18]])
    """

    def __init__(self, symbols: Int[Tensor, " n"], batch_size: int, context: int, *, shift: int = 0) -> None:
        self.context = require_integer(context, "context", at_least=1)
        self.shift = require_integer(shift, "shift", at_least=0)
        batch_size = require_integer(batch_size, "batch_size", at_least=1)
        length = len(symbols) // batch_size
        self._per_epoch = (length - 1 - (context - 1 if shift else 0)) // context
        if self._per_epoch < 1:
            raise InvalidInput(
                f"a text of {len(symbols)} symbols is too short for {batch_size} rows with windows of {context}."
            )
        self.rows = symbols[: batch_size * length].reshape(batch_size, length)

    @property
    def per_epoch(self) -> int:
        """Whole windows in a row."""
        return self._per_epoch

    def batch_at(self, step: int) -> tuple[Int[Tensor, "batch t"], Int[Tensor, "batch t"]]:
        """Inputs and targets of a step."""
        epoch, place = divmod(step, self.per_epoch)
        start = place * self.context + epoch * self.shift % self.context
        window = self.rows[:, start : start + self.context + 1]
        return window[:, :-1].clone(), window[:, 1:].clone()
