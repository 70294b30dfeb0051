"""One step of a recurrent map, and how its gradient goes back: the only difference between recurrent cores.

A step is a formula, ``advance``, that autograd can differentiate. A step that is used in training also brings a
kernel: the same formula into buffers that are already there, and its transposed derivative by hand. The two are
compared by ``tests/nn/recurrent/test_step_contract.py``.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TypeAlias

from torch import Tensor

Weights: TypeAlias = tuple[Tensor, ...]


class AbstractKernel(abc.ABC):
    """A step without autograd, bound to its weights. One object serves one forward or one backward pass."""

    @abc.abstractmethod
    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        """Write the state after step t into ``out``."""

    def forward_all(self, drives: Sequence[Tensor], states: Sequence[Tensor], n_steps: int) -> None:
        """The first steps one after the other, ``states`` beginning with the initial one; a tighter loop may replace
        this one."""
        for t in range(n_steps):
            self.forward(t, drives[t], states[t], states[t + 1])

    @abc.abstractmethod
    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        """Compute, for all steps at once, what the way back needs; ``states`` begins with the initial state.

        Gives the buffer for the gradients by the drives. What stands in it is the kernel's own: ``backward`` finds it
        there, in ``drive_gradient``, and writes over it.
        """

    @abc.abstractmethod
    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        """From the gradient by the state after step t, write that by the drive, and ``incoming`` plus that by the
        state before; ``incoming`` and ``out`` never share memory with ``gradient``."""

    def backward_all(
        self,
        now: Tensor,
        incoming: Sequence[Tensor],
        drive_gradients: Sequence[Tensor],
        buffers: tuple[Tensor, Tensor],
        n_steps: int,
    ) -> Tensor:
        """The way back over the first steps from the gradient ``now`` after them; gives that by the initial state."""
        for t in range(n_steps - 1, -1, -1):
            before = buffers[t % 2]
            self.backward(t, now, incoming[t], drive_gradients[t], before)
            now = before
        return now

    @abc.abstractmethod
    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        """Gradients by the weights, from those by all drives."""


class AbstractStep(abc.ABC):
    """``state' = advance(drive, state, weights)`` for one step of a batch.

    For implementers: write ``advance`` with differentiable operations, ``drive`` being (batch, d), ``state`` (batch,
    n); samples must not mix. ``scan`` then works, with gradients of any order. Write ``kernel`` too if it must be
    fast. A step holds no tensors that need a gradient: they come as ``weights``.
    """

    @abc.abstractmethod
    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""

    def kernel(self, weights: Weights) -> AbstractKernel | None:
        """The hand-written form, if there is one for these weights."""
        return None
