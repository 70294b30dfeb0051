"""The adding task: a sequence of numbers, two of them marked; give the sum of these two at the end."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor
from torch.nn import functional

from separatrix.core.arrays import require_integer
from separatrix.core.names import suggest_options

from .task import Readout, SequenceBatch, SequenceTask

TOLERANCE = 0.04
"""A sum counts as right when it is nearer than this."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Adding(SequenceTask):
    """Numbers uniform in [0, 1) beside a marker that is 1 at one step of each half; the answer is the marked sum.

    Args:
        length: L, the number of steps of a sequence.

    Source:
        kerg2022, appendix D.1. Always answering 1 has the mean squared error 1/6.

    Example:
        >>> batch = Adding(6).sample(2, generator=torch.Generator().manual_seed(0))
        >>> bool(((batch.inputs[..., 0] * batch.inputs[..., 1]).sum(1, keepdim=True) == batch.targets).all())
        True
    """

    length: int = 200

    def __post_init__(self) -> None:
        require_integer(self.length, "length", at_least=2)

    @property
    def n_inputs(self) -> int:
        """A number and its marker."""
        return 2

    @property
    def n_outputs(self) -> int:
        """The sum."""
        return 1

    @property
    def baseline(self) -> float:
        """The variance of the sum of two uniform numbers, 1/6."""
        return 1 / 6

    @property
    def readout(self) -> Readout:
        """Only the last step is asked."""
        return "last"

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems."""
        require_integer(n, "n", at_least=1)
        half = self.length // 2
        values = torch.rand(n, self.length, generator=generator)
        first = torch.randint(half, (n, 1), generator=generator)
        second = torch.randint(half, self.length, (n, 1), generator=generator)
        places = torch.cat([first, second], dim=1)
        markers = torch.zeros_like(values).scatter_(1, places, 1.0)
        targets = values.gather(1, places).sum(1, keepdim=True)
        return SequenceBatch(torch.stack([values, markers], dim=-1), targets, places)

    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Mean squared error."""
        self.require_outputs(outputs, batch)
        return functional.mse_loss(outputs, batch.targets)

    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Share of sums that are right to 0.04."""
        self.require_outputs(outputs, batch)
        return ((outputs - batch.targets).abs() < TOLERANCE).to(outputs.dtype).mean()
