"""The copy task: ten symbols, a delay, then say them again."""

from __future__ import annotations

import dataclasses
from typing import Literal, final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.names import choose, suggest_options

from .recall import (
    BLANK,
    ENCODINGS,
    N_ITEMS,
    Encoding,
    encode_symbols,
    mean_cross_entropy,
    memoryless_loss,
    recall_accuracy,
    recall_targets,
)
from .task import SequenceBatch, SequenceTask

N_SYMBOLS = 8
CUE = N_SYMBOLS + 1


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Copy(SequenceTask):
    """Ten symbols of eight, ``delay`` steps, then the same ten in order; ``delay + 20`` steps in all.

    The loss is the mean cross entropy over *all* steps, the accuracy that of the last ten. Without memory the best
    loss is ``10 ln 8 / (delay + 20)``: the blanks are known, the symbols guessed.

    Args:
        delay: T.
        encoding: ``"one-hot"`` (10 features) or ``"scalar"`` (the index as one number).
        layout: ``"kerg"``: T - 1 blanks, the cue, ten blanks during which the symbols are wanted. ``"scornn"``: T
            blanks, the cue at the first step at which a symbol is wanted.

    Source:
        kerg2022, appendix A.1.1; lengths and the place of the cue by erratum kerg2022-copy-length.

    Example:
        >>> round(Copy(200).baseline, 7)
        0.0945201
    """

    delay: int = 200
    encoding: Encoding = "one-hot"
    layout: Literal["kerg", "scornn"] = "kerg"

    def __post_init__(self) -> None:
        require_integer(self.delay, "delay", at_least=1)
        choose("encoding", self.encoding, ENCODINGS)
        choose("layout", self.layout, ("kerg", "scornn"))

    @property
    def length(self) -> int:
        """Ten symbols, the delay, ten answers."""
        return self.delay + 2 * N_ITEMS

    @property
    def n_inputs(self) -> int:
        """Blank, eight symbols and the cue; or one number."""
        return CUE + 1 if self.encoding == "one-hot" else 1

    @property
    def n_outputs(self) -> int:
        """Blank and eight symbols."""
        return N_SYMBOLS + 1

    @property
    def baseline(self) -> float:
        """``10 ln 8 / (delay + 20)``."""
        return memoryless_loss(N_SYMBOLS, self.length)

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems."""
        require_integer(n, "n", at_least=1)
        items = torch.randint(1, N_SYMBOLS + 1, (n, N_ITEMS), generator=generator)
        symbols = items.new_full((n, self.length), BLANK)
        symbols[:, :N_ITEMS] = items
        symbols[:, self.delay + N_ITEMS - (self.layout == "kerg")] = CUE
        oracle = torch.arange(N_ITEMS).repeat(n, 1)
        inputs = encode_symbols(symbols, CUE + 1, self.encoding)
        return SequenceBatch(inputs, recall_targets(items, self.length), oracle)

    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Mean cross entropy over all steps."""
        self.require_outputs(outputs, batch)
        return mean_cross_entropy(outputs, batch.targets)

    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        """Share of right symbols among the last ten steps; 1/8 by guessing."""
        self.require_outputs(outputs, batch)
        return recall_accuracy(outputs, batch.targets)
