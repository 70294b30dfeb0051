"""Which objects are shown in training, and which only afterwards."""

from __future__ import annotations

import dataclasses
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
@dataclasses.dataclass(frozen=True)
class Split:
    """A random order of n objects: the first m are for testing only, the others for training.

    With m = 0 both parts are all objects, so that a test is one within the distribution.

    Args:
        n: how many objects there are.
        m: how many are held out.
        seed: of the order.

    Example:
        >>> split = Split(10, 4, 0)
        >>> len(split.train), len(split.test), sorted([*split.train.tolist(), *split.test.tolist()])
        (6, 4, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """

    n: int
    m: int
    seed: int = 0

    def __post_init__(self) -> None:
        require_integer(self.n, "n", at_least=1)
        require_integer(self.m, "m", at_least=0)
        if self.m >= self.n:
            raise InvalidInput(f"m must be below n = {self.n}; got {self.m}.")
        spawn(self.seed)

    @property
    def train(self) -> Int[Tensor, " k"]:
        """Objects of training, in ascending order."""
        return self._order()[self.m :].sort().values

    @property
    def test(self) -> Int[Tensor, " k"]:
        """Objects of the test, in ascending order; those of training if none is held out."""
        return self._order()[: self.m].sort().values if self.m else torch.arange(self.n)

    def _order(self) -> Tensor:
        return torch.randperm(self.n, generator=spawn(self.seed, "relational", "split", self.n))
