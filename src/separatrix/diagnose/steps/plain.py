r"""The plain recurrent network, :math:`h' = \phi(V h + U x + b)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, final

import torch
from torch import Tensor

from .base import AbstractRecurrentMap, scaled_rows, unlimited
from .weights import LayerWeights


@final
class PlainMap(AbstractRecurrentMap):
    """``h' = tanh(V h + U x + b)``, or with a relu."""

    def __init__(
        self, name: str, weights: LayerWeights, nonlinearity: Literal["tanh", "relu"] = "tanh", note: str = ""
    ) -> None:
        self.name, self.weights, self.nonlinearity, self.note = name, weights, nonlinearity, note
        self.kind = f"{nonlinearity} RNN"
        self.input_size = int(weights.weight_ih.shape[1])
        self.state_size = self.output_size = weights.hidden_size

    @property
    def blocks(self) -> Mapping[str, Tensor]:
        """V."""
        return {"recurrent": self.weights.weight_hh}

    def advance(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state."""
        w = self.weights
        total = x @ w.weight_ih.mT + w.bias_ih + state @ w.weight_hh.mT + w.bias_hh
        return torch.tanh(total) if self.nonlinearity == "tanh" else torch.relu(total)

    def jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """diag(1 - h'^2) V, or diag(h' != 0) V."""
        return scaled_rows(self._slopes(x, state), self.weights.weight_hh)

    def input_jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """The same with U."""
        return scaled_rows(self._slopes(x, state), self.weights.weight_ih)

    def bounds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """tanh is below 1, a relu is not negative."""
        low, high = unlimited(x, self.state_size)
        if self.nonlinearity == "relu":
            return torch.zeros_like(low), high
        return -torch.ones_like(low), torch.ones_like(low)

    def _slopes(self, x: Tensor, state: Tensor) -> Tensor:
        after = self.advance(x, state)
        return 1 - after.square() if self.nonlinearity == "tanh" else (after != 0).to(after.dtype)
