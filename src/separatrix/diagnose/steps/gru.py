r"""The gated recurrent unit: :math:`n = \tanh(U_n x + r \odot (W_n h + b_n))`, :math:`h' = (1 - z) n + z h`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from .base import AbstractRecurrentMap, scaled_rows
from .weights import LayerWeights


@final
class GruMap(AbstractRecurrentMap):
    """A GRU. Since ``h' - h = (1 - z)(n - h)`` and z < 1, it rests where ``h = n(h)``, and there |h| < 1."""

    kind = "GRU"
    gated = True

    def __init__(self, name: str, weights: LayerWeights, note: str = "") -> None:
        self.name, self.weights, self.note = name, weights, note
        self.input_size = int(weights.weight_ih.shape[1])
        self.state_size = self.output_size = weights.hidden_size

    @property
    def blocks(self) -> Mapping[str, Tensor]:
        """Matrices of reset, update and candidate, torch's order."""
        return dict(zip("rzn", self.weights.weight_hh.chunk(3), strict=True))

    def _parts(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """r, the pre-activation of z, n, and W_n h + b_n."""
        w = self.weights
        x_r, x_z, x_n = (x @ w.weight_ih.mT + w.bias_ih).chunk(3, dim=-1)
        h_r, h_z, h_n = (state @ w.weight_hh.mT + w.bias_hh).chunk(3, dim=-1)
        r = torch.sigmoid(x_r + h_r)
        return r, x_z + h_z, torch.tanh(x_n + r * h_n), h_n

    def advance(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state."""
        return state + self.displacement(x, state)

    def displacement(self, x: Tensor, state: Tensor) -> Tensor:
        """(1 - z)(n - h), with 1 - z as sigmoid(-a): it does not round to zero where z rounds to one."""
        _, carry, candidate, _ = self._parts(x, state)
        return torch.sigmoid(-carry) * (candidate - state)

    def jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """diag(z) + diag((h - n) z (1 - z)) W_z + diag(1 - z) dn/dh."""
        return self.slope(x, state) + torch.eye(self.state_size, dtype=torch.float64)

    def slope(self, x: Tensor, state: Tensor) -> Tensor:
        """diag((h - n) z (1 - z)) W_z + diag(1 - z) (dn/dh - 1)."""
        _, carry, candidate, _ = self._parts(x, state)
        z, opened = torch.sigmoid(carry), torch.sigmoid(-carry)
        gate = scaled_rows((state - candidate) * z * opened, self.blocks["z"])
        inner = self.rest_jacobian(x, state) - torch.eye(self.state_size, dtype=torch.float64)
        return gate + opened.unsqueeze(-1) * inner

    def input_jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """The same by the input."""
        _, carry, candidate, _ = self._parts(x, state)
        z, opened = torch.sigmoid(carry), torch.sigmoid(-carry)
        by_gate = scaled_rows((state - candidate) * z * opened, self.weights.weight_ih.chunk(3)[1])
        return by_gate + opened.unsqueeze(-1) * self.rest_input_jacobian(x, state)

    def rest_map(self, x: Tensor, y: Tensor) -> Tensor:
        """n(h)."""
        return self._parts(x, y)[2]

    def rest_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """diag(1 - n^2) [diag(r) W_n + diag((W_n h + b_n) r (1 - r)) W_r]."""
        r, _, candidate, h_n = self._parts(x, y)
        inner = scaled_rows(r, self.blocks["n"]) + scaled_rows(h_n * r * (1 - r), self.blocks["r"])
        return (1 - candidate.square()).unsqueeze(-1) * inner

    def rest_input_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The same by the input."""
        r, _, candidate, h_n = self._parts(x, y)
        reset, _, entering = self.weights.weight_ih.chunk(3)
        return (1 - candidate.square()).unsqueeze(-1) * (entering + scaled_rows(h_n * r * (1 - r), reset))

    def bounds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """|h| < 1 at rest, since h is a tanh there."""
        high = torch.ones(len(x), self.state_size, dtype=torch.float64)
        return -high, high
