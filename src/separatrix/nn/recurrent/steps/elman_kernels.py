"""The Elman step without autograd, by torch: a few calls a step, into buffers.

A buffer as long as the sequence is dear where the allocator gets it from the system anew each time: its pages cost
more than the arithmetic on them. So each pass has one, and what is only needed on the way is made for some steps at a
time. The loops run in inference mode, where torch keeps no account of views and versions (a twelfth of a step); what
they give back is made outside, and so is an ordinary tensor. The matrix on the right of a product lies row by row:
products of a few rows with one that lies column by column take half as long again.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .step import AbstractKernel, AbstractSequenceKernel, Weights

if TYPE_CHECKING:
    from .elman import ElmanStep

PORTION = 65_536
"""Numbers that are made at a time."""


def _uncounted(states: Tensor) -> contextlib.AbstractContextManager[object]:
    """Inference mode on devices that are known to take views of ordinary tensors there."""
    return torch.inference_mode() if states.device.type in ("cpu", "cuda") else contextlib.nullcontext()


class ElmanKernel(AbstractSequenceKernel):
    """``h' = keep h + rate phi(V h + drive; b)`` with real states."""

    def __init__(self, step: ElmanStep, weights: Weights) -> None:
        self.step, self.matrix = step, weights[0]
        self.transposed = weights[0].mT
        self.bias = weights[1] if step.phi.has_bias else None
        self.plain = step.keep == 0 and step.rate == 1
        self.values: Tensor | None = None

    def forward_sequence(self, drives: Tensor, states: Tensor, lengths: Tensor | None) -> None:
        """Every state stands where its drive stood."""
        states[1:].copy_(drives)
        first_end = len(drives) if lengths is None else int(lengths.min())
        with _uncounted(states):
            self._advance(states.unbind(0), first_end, lengths)

    def _advance(self, rows: tuple[Tensor, ...], first_end: int, lengths: Tensor | None) -> None:
        """Drives to states, one after the other; from ``first_end`` on some sequences are over."""
        matrix, bias, phi = self.transposed.contiguous(), self.bias, self.step.phi.apply_
        buffer = torch.empty_like(rows[0])
        for t, (before, state) in enumerate(itertools.pairwise(rows)):
            state.addmm_(before, matrix)
            phi(state, bias, buffer)
            if not self.plain:
                state.mul_(self.step.rate).add_(before, alpha=self.step.keep)
            if t >= first_end:
                assert lengths is not None
                over = lengths <= t
                state[over] = before[over]

    def backward_sequence(
        self, drives: Tensor, states: Tensor, gradient: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Every gradient by a drive stands where that by its state stood."""
        self.values = self._phi_values(drives, states)
        by_drives = gradient.clone(memory_format=torch.contiguous_format)
        by_initial = torch.zeros_like(states[0])
        first_end = len(drives) if lengths is None else int(lengths.min())
        with _uncounted(states):
            self._return(by_drives.unbind(0), by_initial, first_end, lengths)
        return by_drives, by_initial

    def _return(self, rows: tuple[Tensor, ...], by_initial: Tensor, first_end: int, lengths: Tensor | None) -> None:
        """Gradients by states to those by drives, the last one first, and that by the initial state."""
        matrix, n_steps = self.matrix.contiguous(), len(rows)
        later = carried = None
        for t, slope in zip(range(n_steps - 1, -1, -1), self._slopes_backwards(), strict=True):
            row = rows[t]
            if later is not None:
                row.addmm_(later, matrix)
            if carried is not None:
                row.add_(carried)
            carried = None if self.plain else row * self.step.keep
            if t >= first_end:
                assert lengths is not None
                over = (lengths <= t).unsqueeze(-1)  # these states passed through unchanged
                carried = torch.where(over, row, row.new_zeros(()) if carried is None else carried)
                row.masked_fill_(over, 0)
            later = row.mul_(slope)
        if later is not None:
            by_initial.addmm_(later, matrix)
        if carried is not None:
            by_initial.add_(carried)

    def _slopes_backwards(self) -> Any:
        """rate phi' of the last step, of the one before, and so on."""
        assert self.values is not None
        for part in reversed(_portions(self.values)):
            slopes = self.step.phi.slope(part)
            yield from reversed((slopes if self.plain else slopes.mul_(self.step.rate)).unbind(0))

    def _phi_values(self, drives: Tensor, states: Tensor) -> Tensor:
        if self.plain:
            return states[1:]
        # computed again: dividing differences of states by a small rate would cost digits
        values = drives + states[:-1] @ self.transposed
        self.step.phi.apply_(values, self.bias)
        return values

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        """The matrix by one product, the bias by sums over some steps at a time."""
        matrix = drive_gradients.flatten(0, 1).mT @ states[:-1].flatten(0, 1)
        if self.bias is None:
            return (matrix,)
        assert self.values is not None
        by_bias = torch.zeros_like(self.bias)
        for value, gradient in zip(_portions(self.values), _portions(drive_gradients), strict=True):
            by_bias += torch.sgn(value).mul_(gradient).sum((0, 1))
        return matrix, by_bias


def _portions(sequence: Tensor) -> tuple[Tensor, ...]:
    """Some steps at a time."""
    return sequence.split(max(1, PORTION // max(1, sequence[0].numel())))


class ComplexModReluKernel(AbstractKernel):
    """Along the phase a gradient passes as it is, across it by the ratio of the sizes after and before."""

    def __init__(self, step: ElmanStep, weights: Weights) -> None:
        self.step, self.matrix, self.bias = step, weights[0], weights[1]
        self.transposed = weights[0].mT
        self.conjugate = weights[0].conj().resolve_conj()
        self.phases: Any = None
        self.ratios: Any = None
        self.all_phases: Tensor | None = None

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        """One step."""
        torch.addmm(drive, previous, self.transposed, out=out)
        self.step.phi.apply_(out, self.bias)

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        """Phases, and ratios of sizes."""
        sizes = states[1:].abs()
        before = torch.where(sizes > 0, sizes - self.bias, torch.ones_like(sizes))
        self.ratios = (sizes / before).unbind(0)
        self.all_phases = torch.sgn(states[1:])
        self.phases = self.all_phases.unbind(0)
        return torch.empty_like(drives)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        """One step back."""
        turned = self.phases[t].conj() * gradient
        drive_gradient.copy_(self.phases[t] * torch.complex(turned.real, self.ratios[t] * turned.imag))
        torch.addmm(incoming, drive_gradient, self.conjugate, out=out)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        """The matrix by one product, the bias by one sum."""
        matrix = drive_gradients.flatten(0, 1).mT @ states[:-1].flatten(0, 1).conj()
        assert self.all_phases is not None
        return matrix, (self.all_phases.conj() * drive_gradients).real.sum((0, 1))
