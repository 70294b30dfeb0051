"""One step of a recurrent map, and how its gradient goes back: the only difference between recurrent cores.

A step is a formula, ``advance``, that autograd can differentiate. A step that is used in training also brings a
kernel: the same formula into buffers that are already there, and its transposed derivative by hand. The two are
compared by ``tests/nn/recurrent/steps/test_step_contract.py``.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from separatrix.core.described import Described

Weights: TypeAlias = tuple[Tensor, ...]


class AbstractSequenceKernel(Described, abc.ABC):
    """All steps of a sequence without autograd, bound to the weights; an object serves one forward or backward pass.

    Time first; ``states`` begins with the initial one. A state stays as it is after its length, if lengths are given.
    """

    @abc.abstractmethod
    def forward_sequence(self, drives: Tensor, states: Tensor, lengths: Tensor | None) -> None:
        """Fill ``states[1:]``."""

    @abc.abstractmethod
    def backward_sequence(
        self, drives: Tensor, states: Tensor, gradient: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """From the gradient by the states after each step, those by the drives and by the initial state."""

    @abc.abstractmethod
    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        """Gradients by the weights, from those by all drives; called after ``backward_sequence``."""


class AbstractKernel(AbstractSequenceKernel):
    """A step without autograd, and the loops around it."""

    @abc.abstractmethod
    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        """Write the state after step t into ``out``."""

    def forward_all(self, drives: Sequence[Tensor], states: Sequence[Tensor], n_steps: int) -> None:
        """The first steps one after the other, ``states`` beginning with the initial one; a tighter loop may replace
        this one."""
        for t in range(n_steps):
            self.forward(t, drives[t], states[t], states[t + 1])

    def forward_sequence(self, drives: Tensor, states: Tensor, lengths: Tensor | None) -> None:
        """Step by step; the tight loop as long as no sequence has ended."""
        n_steps = drives.shape[0]
        rows, inputs = states.unbind(0), drives.unbind(0)
        first_end = n_steps if lengths is None else int(lengths.min())
        self.forward_all(inputs, rows, first_end)
        for t in range(first_end, n_steps):  # from here on some have ended
            assert lengths is not None
            self.forward(t, inputs[t], rows[t], rows[t + 1])
            over = lengths <= t
            rows[t + 1][over] = rows[t][over]

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

    def backward_sequence(
        self, drives: Tensor, states: Tensor, gradient: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Step by step; the tight loop as soon as all sequences are under way."""
        n_steps = drives.shape[0]
        drive_gradients = self.prepare_backward(drives, states)
        # before step t a state has the gradient that came to it from outside after step t - 1
        incoming = (torch.zeros_like(gradient[0]), *gradient.unbind(0))
        outgoing = drive_gradients.unbind(0)
        first_end = n_steps if lengths is None else int(lengths.min())
        buffers = (torch.empty_like(incoming[0]), torch.empty_like(incoming[0]))
        now = incoming[n_steps]
        for t in range(n_steps - 1, first_end - 1, -1):
            assert lengths is not None
            before = buffers[t % 2]
            self.backward(t, now, incoming[t], outgoing[t], before)
            over = lengths <= t
            before[over] = incoming[t][over] + now[over]
            outgoing[t][over] = 0
            now = before
        return drive_gradients, self.backward_all(now, incoming, outgoing, buffers, first_end)


class AbstractStep(Described, abc.ABC):
    """``state' = advance(drive, state, weights)`` for one step of a batch.

    For implementers: write ``advance`` with differentiable operations, ``drive`` being (batch, d), ``state`` (batch,
    n); samples must not mix. ``scan`` then works, with gradients of any order. Write ``kernel`` too if it must be
    fast. A step holds no tensors that need a gradient: they come as ``weights``.
    """

    @abc.abstractmethod
    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""

    def kernel(self, weights: Weights) -> AbstractSequenceKernel | None:
        """The hand-written form, if there is one for these weights."""
        return None

    def compiled_kernel(self, weights: Weights) -> AbstractSequenceKernel | None:
        """A form compiled by numba, if there is one for these weights; asked for only where numba is installed."""
        return None
