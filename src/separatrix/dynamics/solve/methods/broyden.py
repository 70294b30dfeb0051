"""Good Broyden with limited memory, one approximate inverse Jacobian per sample."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true
from separatrix.core.arrays import require_integer
from separatrix.core.names import suggest_options

from ..maps.absorbed import Slots
from ..maps.compiled import loops, runs_compiled
from ..maps.counted import CountedMap
from ..maps.stacks import combination
from .base import AbstractEquilibriumSolver, States

_SUFFICIENT_DECREASE = 1e-4
_LARGEST_GAIN = 1e8
"""A sample whose update would divide by nearly zero does without it."""


class BroydenHistory:
    """The steps taken, which hold all of M, minus the approximate inverse Jacobian of f(z) - z.

    M is a product of factors I + u s^T, one for each step s, and u lies in the plane of s and the next step (Kelley,
    Iterative Methods for Linear and Nonlinear Equations, 1995, chapter 7): no second vector is kept. M times the
    residual r is r plus a combination of the steps whose weights solve a triangular system in inner products. So one
    step reads the stack of steps twice. The slot after the last step holds the residual.
    """

    def __init__(self, fixed_point_map: CountedMap, z: States, memory: int) -> None:
        batch, dim = z.shape
        self.fixed_point_map = fixed_point_map
        self.steps = z.new_empty(batch, memory + 1, dim)
        self.lower = z.new_zeros(batch, memory, memory, dtype=torch.float64)
        self.onward = z.new_zeros(batch, memory, dtype=torch.float64)
        """Weight of the next step in u."""
        self.own = z.new_zeros(batch, memory, dtype=torch.float64)
        """Weight of the step itself in u; zero for steps taken in full."""
        self.length: Tensor | None = None
        self.n_steps = 0

    def slot(self) -> States:
        """Of the next residual, and then of the step that follows from it."""
        return self.steps[:, self.n_steps]

    def restart(self) -> States:
        """Forget all steps; the first new one is the residual."""
        if self.n_steps > 0:
            self.steps[:, 0] = self.slot()
        self.n_steps = 1
        return self.steps[:, 0]

    def advance(self) -> States:
        """The quasi-Newton step for the residual in its slot, which it replaces."""
        n = self.n_steps
        products = torch.bmm(self.steps[:, n - 1 : n + 1], self.steps[:, :n].mT).double()
        last = products[:, 0]  # the last step with all steps; then the residual with all steps
        shares = self._shares(last, products[:, 1])
        size = last[:, n - 1] if self.length is None else last[:, n - 1] / self.length
        gain = size / (size - shares[:, n - 1])
        usable = gain.abs() < _LARGEST_GAIN
        gain = torch.where(usable, gain, 1.0).unsqueeze(-1)
        weights = shares * self.onward[:, :n]  # of the steps after the first
        weights[:, n - 1] = 1  # of the residual, which lies in the slot after them
        self.onward[:, n - 1] = torch.where(usable, 1 / size, 0.0)
        first = 1
        if self.length is not None:
            first = 0
            self.own[:, n - 1] = torch.where(usable, (1 - 1 / self.length) / size, 0.0)
            weights = torch.nn.functional.pad(weights, (1, 0))
            weights[:, :n] += shares * self.own[:, :n]
        step = combination((gain * weights).to(self.steps.dtype), self.steps[:, first : n + 1])
        self.steps[:, n] = step
        self.n_steps = n + 1
        return step

    def advanced(self, z: States) -> States:
        """z and its quasi-Newton step, where steps are taken in full."""
        if not runs_compiled(self.steps) or self.length is not None:
            return z + self.advance()
        out = torch.empty_like(z)
        arrays = (part.numpy() for part in (self.lower, self.onward))
        loops().advance(self.steps.numpy(), self.n_steps, *arrays, _LARGEST_GAIN, z.contiguous().numpy(), out.numpy())
        self.n_steps += 1
        return out

    def shorten(self, length: Tensor) -> States:
        """Multiply the last step by a length (batch,)."""
        n = self.n_steps
        self.steps[:, n - 1] *= length.unsqueeze(-1).to(self.steps.dtype)
        self.length = length.double()
        if n > 1:
            self.onward[:, n - 2] /= self.length
        return self.steps[:, n - 1]

    def _shares(self, last: Tensor, residual: Tensor) -> Tensor:
        """The inner product of each step with what the factors before its own have made of the residual."""
        n = self.n_steps
        if n > 1:
            row = self.onward[:, : n - 1] * last[:, 1:]
            if self.length is not None:
                row = row + self.own[:, : n - 1] * last[:, :-1]
            self.lower[:, n - 1, : n - 1] = -row
        return torch.linalg.solve_triangular(
            self.lower[:, :n, :n], residual.unsqueeze(-1), upper=False, unitriangular=True
        ).squeeze(-1)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Broyden(AbstractEquilibriumSolver[BroydenHistory]):
    """Quasi-Newton steps from rank-one updates of the inverse Jacobian, starting from Picard.

    When the memory is full the history starts anew: dropping or overwriting a single step would break the secant
    conditions of those that follow it. Cost a step beyond the map: two passes over (batch, steps, d), and a triangular
    system of that many unknowns per sample; memory (batch, min(memory, max_steps) + 1, d).

    Args:
        memory: number of steps kept before the restart.
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
        """No step yet."""
        return BroydenHistory(fixed_point_map, z, min(self.memory, self.max_steps))

    def slots(self, history: BroydenHistory) -> Slots:
        """The residual is written beside the steps."""
        return Slots(history.steps, None, history.n_steps)

    def propose(self, history: BroydenHistory, z: States, f: States, residual: States) -> States:
        """The quasi-Newton step; the first, and the one after a restart, is a Picard step."""
        if self.line_search == 0:
            return z + history.restart() if self._begins(history) else history.advanced(z)
        size = _norm(residual)
        direction = self._direction(history)
        return z + history.shorten(self._step_length(history.fixed_point_map, z, direction, size))

    def _direction(self, history: BroydenHistory) -> States:
        return history.restart() if self._begins(history) else history.advance()

    def _begins(self, history: BroydenHistory) -> bool:
        return history.n_steps in (0, history.steps.shape[1] - 1)

    def _step_length(self, fixed_point_map: CountedMap, z: Tensor, direction: Tensor, size: Tensor) -> Tensor:
        length = torch.ones_like(size)
        settled = ~torch.isfinite(size)
        for _ in range(self.line_search):
            trial = z + length.unsqueeze(-1) * direction
            falls = _norm(fixed_point_map(trial) - trial) <= (1 - _SUFFICIENT_DECREASE * length) * size
            settled = settled | falls
            if all_true(settled):
                break
            length = torch.where(settled, length, length / 2)
        return length


def _norm(a: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a, dim=-1)
