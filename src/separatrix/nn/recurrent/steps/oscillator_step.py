"""The step of coupled oscillators: positions y and velocities z side by side in the state."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from torch import Tensor

from .step import AbstractKernel, AbstractStep, Weights


@final
@dataclasses.dataclass(frozen=True)
class OscillatorStep(AbstractStep):
    """``z' = z + dt (tanh(W y + U z + drive) - stiffness y - damping z)``, ``y' = y + dt z'``; the weight is [W U]."""

    dt: float
    stiffness: float
    damping: float

    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""
        y, z = state.chunk(2, dim=-1)
        force = torch.tanh(drive + state @ weights[0].mT)
        z = z + self.dt * (force - self.stiffness * y - self.damping * z)
        return torch.cat([y + self.dt * z, z], dim=-1)

    def kernel(self, weights: Weights) -> AbstractKernel:
        """By hand."""
        return _OscillatorKernel(self, weights[0])


class _OscillatorKernel(AbstractKernel):
    def __init__(self, step: OscillatorStep, matrix: Tensor) -> None:
        self.step, self.matrix, self.transposed = step, matrix, matrix.mT.contiguous()
        self.size = matrix.shape[0]
        self.slopes: Any = None

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        step, size = self.step, self.size
        force = torch.addmm(drive, previous, self.transposed).tanh_()
        y, z = previous[:, :size], previous[:, size:]
        force.sub_(y, alpha=step.stiffness).sub_(z, alpha=step.damping)
        torch.add(z, force, alpha=step.dt, out=out[:, size:])
        torch.add(y, out[:, size:], alpha=step.dt, out=out[:, :size])

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        force = torch.tanh(drives + states[:-1] @ self.transposed)
        self.slopes = (self.step.dt * (1 - force * force)).unbind(0)
        return torch.empty_like(drives)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        step, size = self.step, self.size
        by_y, by_z = gradient[:, :size], torch.add(gradient[:, size:], gradient[:, :size], alpha=self.step.dt)
        torch.mul(by_z, self.slopes[t], out=drive_gradient)
        torch.addmm(incoming, drive_gradient, self.matrix, out=out)
        out[:, :size].add_(by_y).sub_(by_z, alpha=step.dt * step.stiffness)
        out[:, size:].add_(by_z, alpha=1 - step.dt * step.damping)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        return (drive_gradients.flatten(0, 1).mT @ states[:-1].flatten(0, 1),)
