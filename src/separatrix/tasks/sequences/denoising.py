"""The denoise task: ten symbols scattered over a long blank sequence, then say them in order."""

from __future__ import annotations

import dataclasses
from typing import Literal, final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.names import choose, suggest_options

from .recall import (
    BLANK,
    N_ITEMS,
    encode_symbols,
    mean_cross_entropy,
    memoryless_loss,
    recall_accuracy,
    recall_targets,
)
from .task import SequenceBatch, SequenceTask

CUE = 10


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Denoise(SequenceTask):
    """Ten symbols at random steps among the first ``delay + 9``, the cue, then the ten in order of appearance.

    Args:
        delay: T; ``delay + 20`` steps in all.
        variant: ``"kerg"``: eight symbols at ten different steps, 11 features. ``"jing"``, as in the public code of
            the gated orthogonal unit: nine symbols at steps drawn with replacement, so that some are overwritten and
            lost although they are asked for, and 10 features, so that the cue is the zero vector.

    Source:
        kerg2022, section 4.6.

    Example:
        >>> batch = Denoise(30).sample(2, generator=torch.Generator().manual_seed(0))
        >>> batch.inputs.shape, batch.targets[:, :40].abs().max().item()
        (torch.Size([2, 50, 11]), 0)
    """

    delay: int = 100
    variant: Literal["kerg", "jing"] = "kerg"

    def __post_init__(self) -> None:
        require_integer(self.delay, "delay", at_least=1)
        choose("variant", self.variant, ("kerg", "jing"))

    @property
    def n_symbols(self) -> int:
        """Symbols that a step may carry, beside the blank."""
        return 8 if self.variant == "kerg" else 9

    @property
    def length(self) -> int:
        """Noise, cue and ten answers."""
        return self.delay + 2 * N_ITEMS

    @property
    def n_inputs(self) -> int:
        """Depth of the one-hot vectors."""
        return CUE + 1 if self.variant == "kerg" else CUE

    @property
    def n_outputs(self) -> int:
        """Ten classes in both variants."""
        return CUE

    @property
    def baseline(self) -> float:
        """``10 ln(n_symbols) / (delay + 20)``."""
        return memoryless_loss(self.n_symbols, self.length)

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems."""
        require_integer(n, "n", at_least=1)
        n_places = self.delay + N_ITEMS - 1
        items = torch.randint(1, self.n_symbols + 1, (n, N_ITEMS), generator=generator)
        if self.variant == "kerg":
            places = torch.rand(n, n_places, generator=generator).argsort(dim=1)[:, :N_ITEMS]
        else:
            places = torch.randint(n_places, (n, N_ITEMS), generator=generator)
        places = places.sort(dim=1).values
        symbols = items.new_full((n, self.length), BLANK)
        for k in range(N_ITEMS):  # one after the other: where two share a step, the later one stays
            symbols.scatter_(1, places[:, k : k + 1], items[:, k : k + 1])
        symbols[:, n_places] = CUE
        inputs = encode_symbols(symbols, self.n_inputs, "one-hot")
        return SequenceBatch(inputs, recall_targets(items, self.length), places)

    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Mean cross entropy over all steps."""
        self.require_outputs(outputs, batch)
        return mean_cross_entropy(outputs, batch.targets)

    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Share of right symbols among the last ten steps."""
        self.require_outputs(outputs, batch)
        return recall_accuracy(outputs, batch.targets)
