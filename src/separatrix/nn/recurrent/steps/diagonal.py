r"""Steps that are linear in the state and do not mix units: :math:`h' = a \odot h + x`."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from torch import Tensor

from .step import AbstractKernel, AbstractStep, Weights


@final
@dataclasses.dataclass(frozen=True)
class DiagonalStep(AbstractStep):
    """``h' = a h + drive`` with the same a at every step, the only weight; real or complex."""

    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""
        return weights[0] * state + drive

    def kernel(self, weights: Weights) -> AbstractKernel:
        """By hand."""
        return _DiagonalKernel(weights[0])


class _DiagonalKernel(AbstractKernel):
    def __init__(self, factor: Tensor) -> None:
        self.factor = factor
        self.conjugate = factor.conj().resolve_conj()

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        torch.addcmul(drive, self.factor, previous, out=out)

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        return torch.empty_like(drives)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        drive_gradient.copy_(gradient)
        torch.addcmul(incoming, self.conjugate, gradient, out=out)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        return ((drive_gradients * states[:-1].conj()).sum((0, 1)),)


@final
@dataclasses.dataclass(frozen=True)
class GatedDiagonalStep(AbstractStep):
    """``h' = (1 - z) h + z c`` where the drive holds z and c side by side; no weights."""

    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""
        gate, candidate = drive.chunk(2, dim=-1)
        return state + gate * (candidate - state)

    def kernel(self, weights: Weights) -> AbstractKernel:
        """By hand."""
        return _GatedDiagonalKernel()


class _GatedDiagonalKernel(AbstractKernel):
    def __init__(self) -> None:
        self.gates: Any = None
        self.gaps: Any = None
        self.kept: Any = None

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        gate, candidate = drive.chunk(2, dim=-1)
        torch.lerp(previous, candidate, gate, out=out)

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        gates, candidates = drives.chunk(2, dim=-1)
        self.gates = gates.unbind(0)
        self.kept = (1 - gates).unbind(0)
        self.gaps = (candidates - states[:-1]).unbind(0)
        return torch.empty_like(drives)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        gate, candidate = drive_gradient.chunk(2, dim=-1)
        torch.mul(gradient, self.gaps[t], out=gate)
        torch.mul(gradient, self.gates[t], out=candidate)
        torch.addcmul(incoming, gradient, self.kept[t], out=out)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        return ()
