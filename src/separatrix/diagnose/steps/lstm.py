r"""Long short-term memory: :math:`c' = f c + i g`, :math:`h' = o \tanh(c')`, with a projection of h if it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import torch
from torch import Tensor

from .base import AbstractRecurrentMap, scaled_rows
from .weights import LayerWeights

_LARGEST = 60.0
"""1 + e^a is cut here: a cell that forgets a part of e^-60 a step has no rest within any number of steps."""


@final
class LstmMap(AbstractRecurrentMap):
    """An LSTM on states (h, c). It rests where ``c = i g / (1 - f)``, which h determines: ``h = o tanh(c(h))``."""

    kind = "LSTM"
    gated = True

    def __init__(self, name: str, weights: LayerWeights, note: str = "") -> None:
        self.name, self.weights, self.note = name, weights, note
        self.input_size = int(weights.weight_ih.shape[1])
        self.output_size = int(weights.weight_hh.shape[1])
        self.state_size = self.output_size + weights.hidden_size

    @property
    def rest_size(self) -> int:
        """Entries of h."""
        return self.output_size

    @property
    def blocks(self) -> Mapping[str, Tensor]:
        """Matrices of input, forget, cell and output gate, torch's order; times the projection if there is one."""
        project = self.weights.weight_hr
        parts = dict(zip("ifgo", self.weights.weight_hh.chunk(4), strict=True))
        return parts if project is None else {gate: block @ project for gate, block in parts.items()}

    def _gates(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """Pre-activations of the four gates."""
        w = self.weights
        return (x @ w.weight_ih.mT + w.bias_ih + h @ w.weight_hh.mT + w.bias_hh).chunk(4, dim=-1)

    def _projected(self, values: Tensor) -> Tensor:
        """h from o tanh(c), or rows of derivatives of the one from those of the other."""
        project = self.weights.weight_hr
        if project is None:
            return values
        return values @ project.mT if values.ndim == 2 else project @ values

    def advance(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state."""
        h, c = state[:, : self.output_size], state[:, self.output_size :]
        i, f, g, o = self._gates(x, h)
        after = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.cat([self._projected(torch.sigmoid(o) * torch.tanh(after)), after], dim=-1)

    def displacement(self, x: Tensor, state: Tensor) -> Tensor:
        """With 1 - f as sigmoid(-a)."""
        h, c = state[:, : self.output_size], state[:, self.output_size :]
        i, f, g, o = self._gates(x, h)
        moved = torch.sigmoid(i) * torch.tanh(g) - torch.sigmoid(-f) * c
        after = self._projected(torch.sigmoid(o) * torch.tanh(c + moved))
        return torch.cat([after - h, moved], dim=-1)

    def jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """By (h, c), from the derivatives of c' and h'."""
        return self.slope(x, state) + torch.eye(self.state_size, dtype=torch.float64)

    def slope(self, x: Tensor, state: Tensor) -> Tensor:
        """The same less one; that of the cell is -(1 - f), with 1 - f as sigmoid(-a)."""
        by_state, (out, spread, f) = self._derivatives(x, state, self.weights.weight_hh)
        keep = torch.diag_embed(-torch.sigmoid(-self._gates(x, state[:, : self.output_size])[1]))
        by_cell = self._projected(torch.diag_embed(spread * f))
        by_output = self._projected(out + spread.unsqueeze(-1) * by_state)
        top = torch.cat([by_output - torch.eye(self.output_size, dtype=torch.float64), by_cell], dim=-1)
        return torch.cat([top, torch.cat([by_state, keep], dim=-1)], dim=-2)

    def input_jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """By the input."""
        by_input, (out, spread, _) = self._derivatives(x, state, self.weights.weight_ih)
        return torch.cat([self._projected(out + spread.unsqueeze(-1) * by_input), by_input], dim=-2)

    def _derivatives(self, x: Tensor, state: Tensor, matrix: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """dc' by what ``matrix`` multiplies; then the output gate's share of dh', dh'/dc' and f."""
        h, c = state[:, : self.output_size], state[:, self.output_size :]
        pre = self._gates(x, h)
        i, f, o = (torch.sigmoid(pre[place]) for place in (0, 1, 3))
        g = torch.tanh(pre[2])
        w_i, w_f, w_g, w_o = matrix.chunk(4)
        by = scaled_rows(c * f * (1 - f), w_f) + scaled_rows(g * i * (1 - i), w_i) + scaled_rows(i * (1 - g * g), w_g)
        after = torch.tanh(f * c + i * g)
        return by, (scaled_rows(after * o * (1 - o), w_o), o * (1 - after.square()), f)

    def rest_map(self, x: Tensor, y: Tensor) -> Tensor:
        """o tanh(c(h))."""
        return self._projected(torch.sigmoid(self._gates(x, y)[3]) * torch.tanh(self._cell(x, y)))

    def rest_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """By h."""
        return self._rest_derivative(x, y, self.weights.weight_hh)

    def rest_input_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """By the input."""
        return self._rest_derivative(x, y, self.weights.weight_ih)

    def _cell(self, x: Tensor, h: Tensor) -> Tensor:
        """i g / (1 - f), where 1 / (1 - f) = 1 + e^a."""
        i, f, g, _ = self._gates(x, h)
        return torch.sigmoid(i) * torch.tanh(g) * (1 + f.clamp_max(_LARGEST).exp())

    def _rest_derivative(self, x: Tensor, y: Tensor, matrix: Tensor) -> Tensor:
        pre = self._gates(x, y)
        i, f, o = (torch.sigmoid(pre[place]) for place in (0, 1, 3))
        g, cell = torch.tanh(pre[2]), self._cell(x, y)
        longer = 1 + pre[1].clamp_max(_LARGEST).exp()
        w_i, w_f, w_g, w_o = matrix.chunk(4)
        by = scaled_rows(cell * (1 - i), w_i) + scaled_rows(cell * f, w_f) + scaled_rows(i * (1 - g * g) * longer, w_g)
        bent = torch.cosh(cell.clamp(-300, 300)).pow(-2)  # 1 - tanh^2 without rounding to zero too early
        out = scaled_rows(torch.tanh(cell) * o * (1 - o), w_o) + (o * bent).unsqueeze(-1) * by
        return self._projected(out)

    def lower(self, state: Tensor) -> Tensor:
        """h."""
        return state[:, : self.output_size]

    def lift(self, x: Tensor, y: Tensor) -> Tensor:
        """(h, c(h))."""
        return torch.cat([y, self._cell(x, y)], dim=-1)

    def bounds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """|h| < 1 before the projection; then gates are bounded, and |c| <= i / (1 - f) at rest."""
        w, project = self.weights, self.weights.weight_hr
        ones = torch.ones(self.weights.hidden_size, dtype=torch.float64)
        reach = ones if project is None else project.abs() @ ones
        drive = x @ w.weight_ih.mT + w.bias_ih + w.bias_hh
        i, f, _, _ = (drive + w.weight_hh.abs() @ reach).chunk(4, dim=-1)
        cell = torch.sigmoid(i) * (1 + f.clamp_max(_LARGEST).exp())
        high = torch.cat([reach.expand(len(x), -1), cell], dim=-1)
        return -high, high
