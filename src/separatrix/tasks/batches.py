"""The batch of any step, as a function of the step: a run that is resumed needs no other position in the data."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import spawn


@final
@suggest_options
class ShuffledBatches:
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

    @property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        return self.n_items // self.batch_size

    def __call__(self, step: int) -> Int[Tensor, " batch"]:
        """The indices of the batch of a step."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            seed, *path = self._stream
            generator = spawn(int(seed), *path, "epoch", epoch)
            self._order, self._epoch = torch.randperm(self.n_items, generator=generator), epoch
        return self._order[place * self.batch_size : (place + 1) * self.batch_size]


@final
@suggest_options
class ContiguousBatches:
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
        self.per_epoch = (length - 1 - (context - 1 if shift else 0)) // context
        if self.per_epoch < 1:
            raise InvalidInput(
                f"a text of {len(symbols)} symbols is too short for {batch_size} rows with windows of {context}."
            )
        self.rows = symbols[: batch_size * length].reshape(batch_size, length)

    def __call__(self, step: int) -> tuple[Int[Tensor, "batch t"], Int[Tensor, "batch t"]]:
        """Inputs and targets of a step."""
        epoch, place = divmod(step, self.per_epoch)
        start = place * self.context + epoch * self.shift % self.context
        window = self.rows[:, start : start + self.context + 1]
        return window[:, :-1], window[:, 1:]
