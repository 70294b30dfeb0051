"""Characters to characters: an embedding before a recurrent core, a read-out behind it."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

EMBEDDING = 200
"""kerg2022, appendix A.1.3."""


@final
class CharacterModel(nn.Module):
    """Embedding and read-out uniform in +-0.1; the state is carried from window to window."""

    def __init__(self, core: nn.Module, n_symbols: int, generator: torch.Generator) -> None:
        super().__init__()
        self.embedding = nn.utils.skip_init(nn.Embedding, n_symbols, core.input_size)
        self.core = core
        size = int(getattr(core, "output_size", core.hidden_size))  # type: ignore[arg-type]
        self.head = nn.utils.skip_init(nn.Linear, size, n_symbols)
        with torch.no_grad():
            self.embedding.weight.uniform_(-0.1, 0.1, generator=generator)
            self.head.weight.uniform_(-0.1, 0.1, generator=generator)
            self.head.bias.zero_()
            entering = getattr(core, "input_weight", None)
            if entering is not None:  # Kaiming, as for this task
                entering.normal_(0, (2 / entering.shape[-1]) ** 0.5, generator=generator)

    def forward(self, symbols: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Logits of the next symbol at every step, and the state to go on with."""
        output, state = self.core(self.embedding(symbols), state)
        return self.head(output), state
