"""A recurrent core and a linear read-out, and how many parameters such models have."""

from __future__ import annotations

from typing import Any, Literal, final

import torch
from jaxtyping import Int
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator

from .calling import AbstractSequenceCore


@final
@suggest_options
class SequenceModel(nn.Module):
    """Answers at every step, or after the last one.

    Args:
        core: one of ours, or ``nn.RNN``, ``nn.GRU``, ``nn.LSTM`` with ``batch_first=True`` and one layer.
        n_outputs: size of an answer.
        readout: ``"steps"`` or ``"last"``.
        generator: source of the read-out's weights, Xavier-normal; by default one with seed 0.

    Example:
        >>> from separatrix.nn import ExpRNN
        >>> SequenceModel(ExpRNN(10, 16), 9)(torch.zeros(2, 7, 10)).shape
        torch.Size([2, 7, 9])
    """

    def __init__(
        self,
        core: nn.Module,
        n_outputs: int,
        readout: Literal["steps", "last"] = "steps",
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        choose("readout", readout, ("steps", "last"))
        require_integer(n_outputs, "n_outputs", at_least=1)
        self.core, self.readout = core, readout
        size = core.output_size if isinstance(core, AbstractSequenceCore) else getattr(core, "hidden_size", None)
        if not isinstance(size, int) or not getattr(core, "batch_first", False):
            raise InvalidInput("core must be a recurrent module with batch_first=True and a hidden_size.")
        dtype = next(core.parameters()).dtype
        self.head = nn.utils.skip_init(nn.Linear, size, n_outputs, dtype=dtype)
        nn.init.xavier_normal_(self.head.weight, generator=default_generator(generator))
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor, lengths: Int[Tensor, " batch"] | None = None) -> Tensor:
        """Answers (batch, time, n_outputs), or (batch, n_outputs)."""
        return self.carry(x, None, lengths)[0]

    def carry(self, x: Tensor, state: Any, lengths: Int[Tensor, " batch"] | None = None) -> tuple[Tensor, Any]:
        """Answers, and the state to go on with at the next window."""
        if lengths is None:
            output, state = self.core(x, state)
        elif isinstance(self.core, AbstractSequenceCore):
            output, state = self.core(x, state, lengths)
        else:
            raise InvalidInput("lengths are for cores of this package; pack the sequence for those of torch.")
        if self.readout == "steps":
            return self.head(output.transpose(0, 1)).transpose(0, 1), state  # cores keep time first: no copy
        if lengths is None:
            return self.head(output[:, -1]), state
        last = (lengths - 1).clamp_min(0).reshape(-1, 1, 1).expand(-1, 1, output.shape[-1])
        return self.head(output.gather(1, last).squeeze(1)), state


COUNTED = ("nnrnn", "nnrnn-printed", "nnrnn-complete", "exprnn", "lstm", "rnn")


def parameter_count(kind: str, n_inputs: int, n_hidden: int, n_outputs: int) -> int:
    """Parameters of a core and its linear read-out, as the document counts them.

    Args:
        kind: ``"nnrnn"`` (strict blocks), ``"nnrnn-printed"``, ``"nnrnn-complete"``, ``"exprnn"``, ``"lstm"`` (one bias
            per gate; torch's has two, 4 N more) or ``"rnn"`` (two biases, as torch's).
        n_inputs: features of a step.
        n_hidden: N, even for the non-normal kinds.
        n_outputs: size of an answer.

    Source: kerg2022, Tables 1, 2 and 4 of appendix A.

    Example:
        >>> parameter_count("nnrnn-printed", 10, 128, 9), parameter_count("exprnn", 10, 176, 9)
        (18953, 18929)
    """
    choose("kind", kind, COUNTED)
    for name, value in (("n_inputs", n_inputs), ("n_hidden", n_hidden), ("n_outputs", n_outputs)):
        require_integer(value, name, at_least=1)
    n, skew = n_hidden, n_hidden * (n_hidden - 1) // 2
    elman = n * n_inputs + n
    cores = {
        "nnrnn-printed": 2 * skew + n + elman,
        "nnrnn": 2 * skew - n // 2 + n + elman,
        "nnrnn-complete": 2 * skew + n + elman,
        "exprnn": skew + elman,
        "lstm": 4 * (n * (n + n_inputs) + n),
        "rnn": n * n + elman + n,
    }
    return cores[kind] + n * n_outputs + n_outputs
