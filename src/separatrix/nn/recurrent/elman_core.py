"""Cores of the form h' = phi(V h + U x): what they share beside the matrix V."""

from __future__ import annotations

import abc

import torch
from torch import Tensor, nn

from .core import AbstractRecurrent
from .steps.elman import ElmanStep, find_nonlinearity
from .steps.step import AbstractStep, Weights

BIAS_RANGE = 0.01


class AbstractElman(AbstractRecurrent):
    """``h' = modReLU(V h + U x; b)``, or ``h' = phi(V h + U x + b)`` with another nonlinearity.

    For implementers: write ``recurrent``; call ``_build_input`` at the end of the constructor.
    """

    def __init__(
        self, input_size: int, hidden_size: int, *, nonlinearity: str = "modrelu", batch_first: bool = True
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        self.nonlinearity = find_nonlinearity(nonlinearity).name

    def _build_input(self, generator: torch.Generator, dtype: torch.dtype) -> None:
        """U Xavier-normal; b uniform in +-0.01 for modReLU, else zero."""
        parts = (2,) if self.is_complex else ()
        weight = torch.empty(*parts, self.hidden_size, self.input_size, dtype=torch.float64)
        scale = (2 / (self.hidden_size + self.input_size)) ** 0.5 / (2**0.5 if self.is_complex else 1)
        weight.normal_(0, scale, generator=generator)
        self.input_weight = nn.Parameter(weight.to(dtype))
        bias = torch.zeros(self.hidden_size, dtype=torch.float64)
        if self.nonlinearity == "modrelu":
            bias.uniform_(-BIAS_RANGE, BIAS_RANGE, generator=generator)
        self.bias = nn.Parameter(bias.to(dtype))

    @property
    def step(self) -> AbstractStep:
        """The formula of one step."""
        return ElmanStep(find_nonlinearity(self.nonlinearity))

    @abc.abstractmethod
    def recurrent(self) -> Tensor:
        """V."""

    def weights(self) -> Weights:
        """V, and the bias of a nonlinearity that has one."""
        matrix = self.recurrent()
        return (matrix, self.bias) if self.nonlinearity == "modrelu" else (matrix,)

    def drives(self, x: Tensor) -> Tensor:
        """U x, with the bias where it is an ordinary one."""
        across = self.input_weight.mT.contiguous()  # as it is stored, its gradient is a slow product of thin matrices
        entering = torch.complex(x @ across[0], x @ across[1]) if self.is_complex else x @ across
        return entering if self.nonlinearity == "modrelu" else entering + self.bias

    def pre_activations(self, x: Tensor, states: Tensor) -> Tensor:
        """V h + U x."""
        return self.drives(x) + states[:-1] @ self.recurrent().mT

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{super().extra_repr()}, nonlinearity={self.nonlinearity!r}"
