"""Recurrent networks for the tests of ``diagnose``: torch's own, strangers', and steps without a class."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def networks() -> dict[str, nn.Module]:
    """Torch's networks in all their forms, with weights of the present global seed."""
    return {
        "tanh": nn.RNN(3, 4),
        "relu": nn.RNN(3, 4, nonlinearity="relu", batch_first=True),
        "gru": nn.GRU(3, 4, batch_first=True),
        "gru of two layers": nn.GRU(3, 4, 2),
        "lstm": nn.LSTM(3, 4),
        "lstm of three layers": nn.LSTM(3, 4, 3, batch_first=True),
        "lstm with a projection": nn.LSTM(3, 6, 2, proj_size=2),
        "without biases": nn.LSTM(3, 4, bias=False),
        "rnn cell": nn.RNNCell(3, 4),
        "gru cell": nn.GRUCell(3, 4),
        "lstm cell": nn.LSTMCell(3, 4),
    }


class StrangerCell(nn.Module):
    """A leaky network whose only way in is ``step(x, state)``."""

    def __init__(self, size: int = 5, features: int = 3) -> None:
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.outer = nn.Linear(features, size)

    def step(self, x: Tensor, state: Tensor) -> Tensor:
        """0.8 of the state and 0.2 of what is new."""
        return 0.8 * state + 0.2 * torch.tanh(self.inner(state) + self.outer(x))


class Reader(nn.Module):
    """A whole model with an LSTM inside."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 3)
        self.memory = nn.LSTM(3, 4, batch_first=True)
        self.out = nn.Linear(4, 7)

    def forward(self, symbols: Tensor) -> Tensor:
        """Scores of the next symbol."""
        return self.out(self.memory(self.table(symbols))[0])


def louder(module: nn.Module, factor: float) -> nn.Module:
    """The module with all its weights multiplied."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(factor)
    return module


def pitchfork() -> nn.RNNCell:
    """One unit, h' = tanh(2 h + x)."""
    cell = nn.RNNCell(1, 1, dtype=torch.float64)
    with torch.no_grad():
        for parameter, value in zip(cell.parameters(), (1.0, 2.0, 0.0, 0.0), strict=True):
            parameter.fill_(value)
    return cell


def as_function(cell: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """A closure over a cell, of which nothing but its answers is known."""
    return lambda x, state: cell(x, state)
