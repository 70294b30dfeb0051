"""The denoise task: symbols scattered over a long blank sequence, then say them in order."""

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
    """Symbols at random steps among the first ``delay + n_items - 1``, the cue, then the symbols in their order.

    Args:
        delay: T; ``delay + 2 n_items`` steps in all.
        variant: ``"kerg"``: eight symbols at ten different steps, 11 features. ``"jing"``, as in the public code of
            the gated orthogonal unit: nine symbols at steps drawn with replacement, so that some are overwritten and
            lost although they are asked for, and 10 features, so that the cue is the zero vector.
        n_items: how many symbols are to be remembered; ten in the documents.

    Source:
        kerg2022, section 4.6.

    Example:
        >>> batch = Denoise(30).sample(2, generator=torch.Generator().manual_seed(0))
        >>> batch.inputs.shape, batch.targets[:, :40].abs().max().item()
        (torch.Size([2, 50, 11]), 0)
    """

    delay: int = 100
    variant: Literal["kerg", "jing"] = "kerg"
    n_items: int = N_ITEMS

    def __post_init__(self) -> None:
        require_integer(self.delay, "delay", at_least=1)
        choose("variant", self.variant, ("kerg", "jing"))
        require_integer(self.n_items, "n_items", at_least=1)

    @property
    def n_symbols(self) -> int:
        """Symbols that a step may carry, beside the blank."""
        return 8 if self.variant == "kerg" else 9

    @property
    def length(self) -> int:
        """Noise, cue and answers."""
        return self.delay + 2 * self.n_items

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
        """``n_items ln(n_symbols) / (delay + 2 n_items)``."""
        return memoryless_loss(self.n_symbols, self.length, self.n_items)

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems."""
        require_integer(n, "n", at_least=1)
        n_places = self.delay + self.n_items - 1
        items = torch.randint(1, self.n_symbols + 1, (n, self.n_items), generator=generator)
        if self.variant == "kerg":
            places = torch.rand(n, n_places, generator=generator).argsort(dim=1)[:, : self.n_items]
        else:
            places = torch.randint(n_places, (n, self.n_items), generator=generator)
        places = places.sort(dim=1).values
        symbols = items.new_full((n, self.length), BLANK)
        for k in range(self.n_items):  # one after the other: where two share a step, the later one stays
            symbols.scatter_(1, places[:, k : k + 1], items[:, k : k + 1])
        symbols[:, n_places] = CUE
        inputs = encode_symbols(symbols, self.n_inputs, "one-hot")
        return SequenceBatch(inputs, recall_targets(items, self.length), places)

    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Mean cross entropy over all steps."""
        self.require_outputs(outputs, batch)
        return mean_cross_entropy(outputs, batch.targets)

    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Share of right symbols among the answers."""
        self.require_outputs(outputs, batch)
        return recall_accuracy(outputs, batch.targets, self.n_items)
