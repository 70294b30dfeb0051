"""Good Broyden with limited memory, one approximate inverse Jacobian per sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.transforms import all_true

from .base import AbstractEquilibriumSolver, States
from .maps import CountedMap
from .stacks import combination, inner_products

_SUFFICIENT_DECREASE = 1e-4
_BLOCK_NUMBERS = 2**21
"""Numbers in each half of a block, if it then holds at least eight pairs."""


class BroydenHistory:
    """The matrix M = I + sum over pairs of left right^T, minus the inverse Jacobian of f(z) - z, and the last step.

    Pairs lie in blocks that are allocated when needed: one buffer that grows would be copied, and one for the whole
    memory would mostly stay empty.
    """

    def __init__(self, fixed_point_map: CountedMap, z: States, memory: int) -> None:
        self.fixed_point_map = fixed_point_map
        self.block_pairs = min(memory, max(8, _BLOCK_NUMBERS // max(z.numel(), 1)))
        self.blocks: list[tuple[Tensor, Tensor]] = []
        self.n_pairs = 0
        self.direction: Tensor | None = None
        self.step: Tensor | None = None

    def times(self, vector: States) -> States:
        """M times a vector."""
        out = vector
        for left, right in self._filled():
            out = out + combination(inner_products(right, vector), left)
        return out

    def transposed_times(self, vector: States) -> States:
        """The transpose of M times a vector."""
        out = vector
        for left, right in self._filled():
            out = out + combination(inner_products(left, vector), right)
        return out

    def store(self, left: States, right: States) -> None:
        """Add a pair."""
        block, slot = divmod(self.n_pairs, self.block_pairs)
        if block == len(self.blocks):
            shape = (left.shape[0], self.block_pairs, left.shape[1])
            self.blocks.append((left.new_empty(shape), left.new_empty(shape)))
        self.blocks[block][0][:, slot] = left
        self.blocks[block][1][:, slot] = right
        self.n_pairs += 1

    def _filled(self) -> Iterator[tuple[Tensor, Tensor]]:
        firsts = range(0, self.n_pairs, self.block_pairs)
        for first, (left, right) in zip(firsts, self.blocks, strict=False):  # after a restart blocks lie empty
            n = min(self.n_pairs - first, self.block_pairs)
            yield left[:, :n], right[:, :n]


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Broyden(AbstractEquilibriumSolver[BroydenHistory]):
    """Quasi-Newton steps from rank-one updates of the inverse Jacobian, starting from Picard.

    When the memory is full the history starts anew: dropping or overwriting a single pair would break the secant
    conditions of those that follow it. Cost a step beyond the map: four passes over (batch, pairs, d).

    Args:
        memory: number of rank-one pairs kept before the restart.
        line_search: how often a step may be halved until the residual falls (Armijo's rule, per sample); each trial
            costs an evaluation. 0 takes every step in full.
    """

    memory: int = 30
    line_search: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.memory, "memory", at_least=1)
        require_integer(self.line_search, "line_search", at_least=0)

    def begin(self, fixed_point_map: CountedMap, z: States) -> BroydenHistory:
        """No pair yet."""
        return BroydenHistory(fixed_point_map, z, self.memory)

    def propose(self, history: BroydenHistory, z: States, f: States, residual: States) -> States:
        """The quasi-Newton step; the first, and the one after a restart, is a Picard step."""
        if history.step is None or history.n_pairs == self.memory:
            history.n_pairs = 0
            history.direction = residual
        else:
            history.direction = self._direction(history, residual)
        history.step = history.direction
        if self.line_search > 0:
            history.step = history.direction * self._step_length(history, z, residual)
        return z + history.step

    def _direction(self, history: BroydenHistory, residual: Tensor) -> Tensor:
        """Update M so that it maps the last difference of residuals to minus the last step, and apply it.

        The last direction is M times the old residual, so M times the difference y of residuals is ``applied`` minus
        it: with s the step, the update M - (s + M y) (s^T M) / (s^T M y) costs no further product with the history
        than M^T s.
        """
        direction, step = history.direction, history.step
        assert direction is not None
        assert step is not None
        applied = history.times(residual)
        overlap, old_overlap = _dot(step, applied), _dot(step, direction)
        curvature = overlap - old_overlap  # s^T M y
        usable = curvature.abs() > 1e-8 * (overlap.abs() + old_overlap.abs())
        gain = torch.where(usable, -curvature.reciprocal(), 0.0)
        left = gain * (applied if step is direction else applied + (step - direction))
        history.store(left, history.transposed_times(step))
        return torch.addcmul(applied, left, overlap)

    def _step_length(self, history: BroydenHistory, z: Tensor, residual: Tensor) -> Tensor:
        assert history.direction is not None
        size = _norm(residual)
        length = torch.ones_like(size)
        settled = torch.zeros_like(size, dtype=torch.bool) | ~torch.isfinite(size)
        for _ in range(self.line_search):
            trial = z + length * history.direction
            falls = _norm(history.fixed_point_map(trial) - trial) <= (1 - _SUFFICIENT_DECREASE * length) * size
            settled = settled | falls
            if all_true(settled):
                break
            length = torch.where(settled, length, length / 2)
        return length


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1, keepdim=True)


def _norm(a: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a, dim=-1, keepdim=True)
