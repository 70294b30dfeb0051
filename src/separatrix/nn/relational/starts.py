"""Layers whose first weights come from a generator."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import skip_init

from separatrix.core.arithmetic.transforms import transforms_active

Start: TypeAlias = Literal["uniform", "kaiming", "xavier", "xavier_tanh", "xavier_uniform"]
"""``uniform`` is torch's own for linear layers, biases included; with the others biases begin at 0."""


def linear(
    n_in: int, n_out: int, generator: torch.Generator, start: Start = "uniform", *, bias: bool = True
) -> nn.Linear:
    """A linear layer."""
    layer = skip_init(nn.Linear, n_in, n_out, bias=bias)
    with torch.no_grad():
        fill_(layer.weight, start, generator)
        if bias:
            if start == "uniform":
                layer.bias.uniform_(-(n_in**-0.5), n_in**-0.5, generator=generator)
            else:
                layer.bias.zero_()
    return layer


def convolution(n_in: int, n_out: int, kernel: int, generator: torch.Generator) -> nn.Conv2d:
    """A convolution that halves the sides: stride 2, padding 1; Kaiming-normal weights, biases 0."""
    layer = skip_init(nn.Conv2d, n_in, n_out, kernel, stride=2, padding=1)
    assert layer.bias is not None
    with torch.no_grad():
        fill_(layer.weight, "kaiming", generator)
        layer.bias.zero_()
    return layer


class _MappableCell(nn.LSTMCell):
    """Torch's cell, spelt out where ``torch.func`` maps it: the fused one has no rule for that."""

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Hidden and carried vector."""
        if not transforms_active():
            return super().forward(x, state)
        hidden, carried = state
        entering, forget, candidate, out = (
            functional.linear(x, self.weight_ih, self.bias_ih) + functional.linear(hidden, self.weight_hh, self.bias_hh)
        ).chunk(4, -1)
        carried = forget.sigmoid() * carried + entering.sigmoid() * candidate.tanh()
        return out.sigmoid() * carried.tanh(), carried


def lstm_cell(n_in: int, n_hidden: int, generator: torch.Generator, start: Start = "xavier") -> nn.LSTMCell:
    """An LSTM cell with torch's two biases.

    With ``"xavier"`` gates are Xavier-normal, the candidate with the gain 5/3 of a tanh, biases 0; with ``"uniform"``
    all is torch's own.
    """
    cell = skip_init(_MappableCell, n_in, n_hidden)
    with torch.no_grad():
        for parameter in cell.parameters():
            if start == "uniform":
                parameter.uniform_(-(n_hidden**-0.5), n_hidden**-0.5, generator=generator)
            elif parameter.ndim == 1:
                parameter.zero_()
            else:
                fill_(parameter[: 2 * n_hidden], "xavier", generator)
                fill_(parameter[2 * n_hidden : 3 * n_hidden], "xavier_tanh", generator)
                fill_(parameter[3 * n_hidden :], "xavier", generator)
    return cell


def fill_(weight: Tensor, start: Start, generator: torch.Generator) -> None:
    """Fill a weight in place."""
    fan_in = weight[0].numel()
    fan_out = weight.shape[0] * (weight[0, 0].numel() if weight.ndim > 2 else 1)
    if start == "uniform":
        weight.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
    elif start == "kaiming":
        weight.normal_(0, math.sqrt(2 / fan_in), generator=generator)
    elif start == "xavier_uniform":
        bound = math.sqrt(6 / (fan_in + fan_out))
        weight.uniform_(-bound, bound, generator=generator)
    else:
        gain = 5 / 3 if start == "xavier_tanh" else 1.0
        weight.normal_(0, gain * math.sqrt(2 / (fan_in + fan_out)), generator=generator)
