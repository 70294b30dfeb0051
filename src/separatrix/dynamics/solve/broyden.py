"""Good Broyden with limited memory, one approximate inverse Jacobian per sample."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer

from .base import AbstractEquilibriumSolver, FixedPointMap, States


@dataclasses.dataclass
class BroydenHistory:
    """The inverse Jacobian of f(z) - z as -I + sum over pairs of left right^T, and the last step."""

    left: Tensor
    right: Tensor
    step: Tensor | None = None
    n_pairs: int = 0


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Broyden(AbstractEquilibriumSolver[BroydenHistory]):
    """Quasi-Newton steps from rank-one updates of the inverse Jacobian, starting from Picard (inverse -I).

    When the memory is full the history starts anew: dropping or overwriting a single pair would break the secant
    conditions of those that follow it. Cost a step beyond the map: four passes over (batch, pairs, d).

    Args:
        memory: number of rank-one pairs kept before the restart.
    """

    memory: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.memory, "memory", at_least=1)

    def begin(self, fixed_point_map: FixedPointMap, z: States) -> BroydenHistory:
        """No pair yet; buffers grow with the number of pairs, up to the memory."""
        batch, dim = z.shape
        size = min(self.memory, 8)
        return BroydenHistory(left=z.new_empty(batch, size, dim), right=z.new_empty(batch, size, dim))

    def propose(self, history: BroydenHistory, z: States, f: States, residual: States) -> States:
        """The quasi-Newton step; the first, and the one after a restart, is a Picard step."""
        if history.step is None or history.n_pairs == self.memory:
            history.n_pairs = 0
            history.step = residual
            return f
        applied = _apply_inverse(history, residual)  # the old inverse on the new residual
        left, right = self._new_pair(history, history.step, applied, residual)
        direction = applied + left * _dot(right, residual)
        history.step = -direction
        return z + history.step

    def _new_pair(
        self, history: BroydenHistory, step: Tensor, applied: Tensor, residual: Tensor
    ) -> tuple[Tensor, Tensor]:
        # The last step is minus the old inverse on the old residual, so the old inverse on the difference of residuals
        # is applied + step, which saves one product with the whole history.
        secant = applied + step
        right = _apply_inverse_transposed(history, step)
        curvature = _dot(step, secant)  # right . difference of residuals
        size = _norm(step) * _norm(secant)
        usable = curvature.abs() > 1e-8 * size
        left = torch.where(usable, (step - secant) / torch.where(usable, curvature, torch.ones_like(curvature)), 0.0)
        _store(history, left, right, self.memory)
        return left, right


def _apply_inverse(history: BroydenHistory, vector: Tensor) -> Tensor:
    n = history.n_pairs
    if n == 0:
        return -vector
    inner = (history.right[:, :n] * vector.unsqueeze(1)).sum(-1, keepdim=True)
    return (history.left[:, :n] * inner).sum(1) - vector


def _apply_inverse_transposed(history: BroydenHistory, vector: Tensor) -> Tensor:
    n = history.n_pairs
    if n == 0:
        return -vector
    inner = (history.left[:, :n] * vector.unsqueeze(1)).sum(-1, keepdim=True)
    return (history.right[:, :n] * inner).sum(1) - vector


def _store(history: BroydenHistory, left: Tensor, right: Tensor, memory: int) -> None:
    room = history.left.shape[1]
    if history.n_pairs == room:
        history.left = _grown(history.left, min(2 * room, memory))
        history.right = _grown(history.right, min(2 * room, memory))
    history.left[:, history.n_pairs] = left
    history.right[:, history.n_pairs] = right
    history.n_pairs += 1


def _grown(buffer: Tensor, size: int) -> Tensor:
    larger = buffer.new_empty(buffer.shape[0], size, buffer.shape[2])
    larger[:, : buffer.shape[1]] = buffer
    return larger


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _norm(a: Tensor) -> Tensor:
    return a.norm(dim=-1, keepdim=True)
