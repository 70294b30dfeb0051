"""The step of the gated orthogonal unit: a reset gate on an orthogonal map, and a gate that carries the state."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from torch import Tensor

from .modrelu import modrelu
from .step import AbstractKernel, AbstractStep, Weights


@final
@dataclasses.dataclass(frozen=True)
class GoruStep(AbstractStep):
    """``r, z = sigmoid``, ``c = modReLU(r Q h + x; b)``, ``h' = z h + (1 - z) c``.

    Weights are the matrices of r, z and Q below one another, and b; the drive holds the three parts side by side.
    """

    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""
        reset, carry, turned = (state @ weights[0].mT).chunk(3, dim=-1)
        to_reset, to_carry, entering = drive.chunk(3, dim=-1)
        gate = torch.sigmoid(carry + to_carry)
        candidate = modrelu(torch.sigmoid(reset + to_reset) * turned + entering, weights[1])
        return gate * state + (1 - gate) * candidate

    def kernel(self, weights: Weights) -> AbstractKernel | None:
        """By hand, for real states."""
        return None if weights[0].is_complex() else _GoruKernel(weights)


class _GoruKernel(AbstractKernel):
    def __init__(self, weights: Weights) -> None:
        self.matrix, self.bias = weights
        self.transposed = self.matrix.mT.contiguous()  # row by row: see elman_kernels
        self.size = self.matrix.shape[1]
        self.factors: tuple[Any, ...] = ()
        self.signs: Tensor | None = None
        self.gradients: Tensor | None = None
        self.rows: Any = None

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        product = previous @ self.transposed
        gates = product[:, : 2 * self.size].add_(drive[:, : 2 * self.size]).sigmoid_()
        candidate = torch.addcmul(drive[:, 2 * self.size :], gates[:, : self.size], product[:, 2 * self.size :])
        size = candidate.abs().add_(self.bias).clamp_min_(0)
        candidate.sgn_().mul_(size)
        torch.lerp(candidate, previous, gates[:, self.size :], out=out)

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        reset, carry, turned = (states[:-1] @ self.transposed).chunk(3, dim=-1)
        to_reset, to_carry, entering = drives.chunk(3, dim=-1)
        reset, carry = torch.sigmoid(reset + to_reset), torch.sigmoid(carry + to_carry)
        candidate = modrelu(reset * turned + entering, self.bias)
        self.signs = torch.sgn(candidate)
        to_gate = (states[:-1] - candidate) * carry * (1 - carry)
        to_candidate = (1 - carry) * (candidate != 0)
        to_reset_gate = turned * reset * (1 - reset)
        self.factors = tuple(part.unbind(0) for part in (to_gate, to_candidate, to_reset_gate, reset, carry))
        self.gradients = drives.new_empty(drives.shape)
        self.rows = self.gradients.unbind(0)
        return torch.empty_like(drives)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        to_gate, to_candidate, to_reset_gate, reset, carry = (part[t] for part in self.factors)
        by_reset, by_carry, by_turned = self.rows[t].chunk(3, dim=-1)
        by_candidate = gradient * to_candidate
        torch.mul(gradient, to_gate, out=by_carry)
        torch.mul(by_candidate, to_reset_gate, out=by_reset)
        torch.mul(by_candidate, reset, out=by_turned)
        drive_gradient[:, : 2 * self.size] = self.rows[t][:, : 2 * self.size]
        drive_gradient[:, 2 * self.size :] = by_candidate
        torch.addmm(incoming, self.rows[t], self.matrix, out=out)
        out.addcmul_(gradient, carry)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        assert self.gradients is not None
        assert self.signs is not None
        over = (drive_gradients == 0).all(-1, keepdim=True)  # a sample that had ended: nothing was done at this step
        products = torch.where(over, torch.zeros_like(self.gradients), self.gradients)
        matrix = products.flatten(0, 1).mT @ states[:-1].flatten(0, 1)
        return matrix, (drive_gradients[..., 2 * self.size :] * self.signs).sum((0, 1))
