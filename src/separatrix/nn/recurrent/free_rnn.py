"""Recurrent networks with an ordinary matrix, which only starts from something special."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_positive
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator

from ..orthogonal.starts import STARTS, rotation_start
from .elman_core import AbstractElman


@final
@suggest_options
class FreeRNN(AbstractElman):
    """``h' = phi(V h + U x)`` with V free to go anywhere from an orthogonal start (RNN-orth).

    Args:
        input_size: features of a step.
        hidden_size: N.
        start: initial V: ``"henaff"``, ``"cayley"``, ``"haar"``, ``"identity"``, ``"uniform-skew"``.
        gain: times the start.
        nonlinearity: as in ``OrthogonalRNN``.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        start: str = "henaff",
        gain: float = 1.0,
        nonlinearity: str = "modrelu",
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, nonlinearity=nonlinearity, batch_first=batch_first)
        choose("start", start, STARTS)
        require_positive(gain, "gain")
        generator = default_generator(generator)
        matrix = gain * rotation_start(start, self.hidden_size, generator=generator)
        self.matrix = nn.Parameter(matrix.to(dtype))
        self._build_input(generator, dtype)

    def recurrent(self) -> Tensor:
        """V."""
        return self.matrix


def IRNN(input_size: int, hidden_size: int, gain: float = 1.0, **options: Any) -> FreeRNN:
    """Rectified units that start from the identity: ``h' = relu(V h + U x + b)``, V = gain I, U of spread 0.001.

    Source: kerg2022, section 2.4 and appendix D.1. Further options are those of ``FreeRNN``.
    """
    rnn = FreeRNN(input_size, hidden_size, start="identity", gain=gain, nonlinearity="relu", **options)
    with torch.no_grad():
        rnn.input_weight.mul_(0.001 / (2 / (input_size + hidden_size)) ** 0.5)
    return rnn
