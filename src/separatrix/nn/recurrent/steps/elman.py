r"""The step of most recurrent networks, :math:`h' = k h + r\,\phi(V h + x; b)`; in the usual case k = 0 and r = 1."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, final

import torch
from torch import Tensor

from separatrix.core.names import resolve

from .modrelu import modrelu
from .step import AbstractKernel, AbstractSequenceKernel, AbstractStep, Weights


class AbstractNonlinearity(abc.ABC):
    """phi, and its derivative from its own value: what the way back needs is in the states themselves."""

    name: ClassVar[str]
    has_bias: ClassVar[bool] = False

    @abc.abstractmethod
    def value(self, a: Tensor, bias: Tensor | None) -> Tensor:
        """phi(a), with operations that autograd follows."""

    @abc.abstractmethod
    def apply_(self, a: Tensor, bias: Tensor | None, buffer: Tensor | None = None) -> None:
        """phi in place; a real buffer of the same shape saves an allocation."""

    @abc.abstractmethod
    def slope(self, value: Tensor) -> Tensor:
        """phi' where phi has this value."""


@final
class Tanh(AbstractNonlinearity):
    """tanh."""

    name = "tanh"

    def value(self, a: Tensor, bias: Tensor | None) -> Tensor:
        """tanh(a)."""
        return torch.tanh(a)

    def apply_(self, a: Tensor, bias: Tensor | None, buffer: Tensor | None = None) -> None:
        """In place."""
        a.tanh_()

    def slope(self, value: Tensor) -> Tensor:
        """1 - tanh^2."""
        return torch.addcmul(torch.ones((), dtype=value.dtype, device=value.device), value, value, value=-1)


@final
class Relu(AbstractNonlinearity):
    """max(a, 0)."""

    name = "relu"

    def value(self, a: Tensor, bias: Tensor | None) -> Tensor:
        """relu(a)."""
        return torch.relu(a)

    def apply_(self, a: Tensor, bias: Tensor | None, buffer: Tensor | None = None) -> None:
        """In place."""
        a.relu_()

    def slope(self, value: Tensor) -> Tensor:
        """1 where the value is not zero."""
        return torch.gt(value, 0, out=torch.empty_like(value))


@final
class Linear(AbstractNonlinearity):
    """a itself."""

    name = "linear"

    def value(self, a: Tensor, bias: Tensor | None) -> Tensor:
        """a."""
        return a

    def apply_(self, a: Tensor, bias: Tensor | None, buffer: Tensor | None = None) -> None:
        """Nothing to do."""

    def slope(self, value: Tensor) -> Tensor:
        """1."""
        return torch.ones_like(value, memory_format=torch.contiguous_format)


@final
class ModRelu(AbstractNonlinearity):
    """modReLU with a bias per unit; complex states too."""

    name = "modrelu"
    has_bias = True

    def value(self, a: Tensor, bias: Tensor | None) -> Tensor:
        """modReLU(a; bias)."""
        assert bias is not None
        return modrelu(a, bias)

    def apply_(self, a: Tensor, bias: Tensor | None, buffer: Tensor | None = None) -> None:
        """In place: the size first, then the sign, which is 0 at 0."""
        assert bias is not None
        size = torch.abs(a, out=buffer).add_(bias).relu_()
        a.sgn_().mul_(size)

    def slope(self, value: Tensor) -> Tensor:
        """1 where the value is not zero (real states)."""
        return torch.ne(value, 0, out=torch.empty_like(value))


NONLINEARITIES: dict[str, AbstractNonlinearity] = {
    nonlinearity.name: nonlinearity for nonlinearity in (ModRelu(), Tanh(), Relu(), Linear())
}


def find_nonlinearity(given: object) -> AbstractNonlinearity:
    """A nonlinearity by name; its derivative must follow from its value, so an arbitrary function will not do."""
    return resolve("nonlinearity", given, NONLINEARITIES)


@final
@dataclasses.dataclass(frozen=True)
class ElmanStep(AbstractStep):
    """``h' = keep h + rate phi(V h + drive; b)``; weights are ``(V,)``, or ``(V, b)`` for a phi with a bias."""

    phi: AbstractNonlinearity
    keep: float = 0.0
    rate: float = 1.0

    def advance(self, drive: Tensor, state: Tensor, weights: Weights) -> Tensor:
        """The next state."""
        bias = weights[1] if self.phi.has_bias else None
        value = self.phi.value(drive + state @ weights[0].mT, bias)
        return value if self.keep == 0 and self.rate == 1 else self.keep * state + self.rate * value

    def kernel(self, weights: Weights) -> AbstractKernel | None:
        """By hand; complex states for modReLU and linear only."""
        is_complex = weights[0].is_complex()
        if is_complex and (self.keep != 0 or self.rate != 1):
            return None
        if is_complex and self.phi.name == "modrelu":
            return _ComplexModReluKernel(self, weights)
        return None if is_complex else ElmanKernel(self, weights)

    def compiled_kernel(self, weights: Weights) -> AbstractSequenceKernel | None:
        """For real states; a nonlinearity of somebody else has none."""
        if weights[0].is_complex() or NONLINEARITIES.get(self.phi.name) is not self.phi:
            return None
        from .compiled import CompiledElmanKernel  # stands above this file

        return CompiledElmanKernel(self, weights)


class ElmanKernel(AbstractKernel):
    """By torch: two or a few calls a step, into buffers."""

    def __init__(self, step: ElmanStep, weights: Weights) -> None:
        self.step, self.matrix = step, weights[0]
        self.transposed = weights[0].mT
        self.bias = weights[1] if step.phi.has_bias else None
        self.plain = step.keep == 0 and step.rate == 1
        self.columns = self.matrix
        self.buffer: Tensor | None = None
        self.values: Tensor | None = None

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        """One step."""
        torch.addmm(drive, previous, self.transposed, out=out)
        if self.buffer is None:
            self.buffer = torch.empty_like(out)
        self.step.phi.apply_(out, self.bias, self.buffer)
        if not self.plain:
            out.mul_(self.step.rate).add_(previous, alpha=self.step.keep)

    def forward_all(self, drives: Sequence[Tensor], states: Sequence[Tensor], n_steps: int) -> None:
        """Without asking at every step what the step is."""
        if not self.plain:
            super().forward_all(drives, states, n_steps)
            return
        matrix, phi, bias, addmm = self.transposed, self.step.phi.apply_, self.bias, torch.addmm
        buffer, state = torch.empty_like(states[0]), states[0]
        for drive, out in zip(drives[:n_steps], states[1:], strict=False):
            addmm(drive, state, matrix, out=out)
            phi(out, bias, buffer)
            state = out

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        """All slopes, in the buffer of the gradients."""
        self.values = self._phi_values(drives, states)
        self.columns = self.matrix.mT.contiguous().mT  # column after column, which products of few rows like better
        slopes = self.step.phi.slope(self.values)
        return slopes if self.plain else slopes.mul_(self.step.rate)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        """One step back."""
        drive_gradient.mul_(gradient)  # the slope stood there
        torch.addmm(incoming, drive_gradient, self.columns, out=out)
        if not self.plain:
            out.add_(gradient, alpha=self.step.keep)

    def backward_all(
        self,
        now: Tensor,
        incoming: Sequence[Tensor],
        drive_gradients: Sequence[Tensor],
        buffers: tuple[Tensor, Tensor],
        n_steps: int,
    ) -> Tensor:
        """Without asking at every step."""
        if not self.plain:
            return super().backward_all(now, incoming, drive_gradients, buffers, n_steps)
        matrix, buffer, addmm = self.columns, buffers[0], torch.addmm
        for entering, by_drive in zip(incoming[:n_steps][::-1], drive_gradients[:n_steps][::-1], strict=True):
            by_drive.mul_(now)  # after this the gradient is not needed any more
            now = addmm(entering, by_drive, matrix, out=buffer)
        return now

    def _phi_values(self, drives: Tensor, states: Tensor) -> Tensor:
        if self.plain:
            return states[1:]
        # computed again: dividing differences of states by a small rate would cost digits
        values = drives + states[:-1] @ self.transposed
        self.step.phi.apply_(values, self.bias)
        return values

    def _matrix_gradient(self, drive_gradients: Tensor, states: Tensor) -> Tensor:
        return drive_gradients.flatten(0, 1).mT @ states[:-1].flatten(0, 1)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        """The matrix by one product, the bias by one sum."""
        matrix = self._matrix_gradient(drive_gradients, states)
        if self.bias is None:
            return (matrix,)
        assert self.values is not None
        signs = torch.sgn(self.values)  # in place afterwards: a second large tensor costs more than the product
        return matrix, signs.mul_(drive_gradients).sum((0, 1))


class _ComplexModReluKernel(AbstractKernel):
    """Along the phase a gradient passes as it is, across it by the ratio of the sizes after and before."""

    def __init__(self, step: ElmanStep, weights: Weights) -> None:
        self.step, self.matrix, self.bias = step, weights[0], weights[1]
        self.transposed = weights[0].mT
        self.conjugate = weights[0].conj().resolve_conj()
        self.phases: Any = None
        self.ratios: Any = None
        self.all_phases: Tensor | None = None

    def forward(self, t: int, drive: Tensor, previous: Tensor, out: Tensor) -> None:
        torch.addmm(drive, previous, self.transposed, out=out)
        self.step.phi.apply_(out, self.bias)

    def prepare_backward(self, drives: Tensor, states: Tensor) -> Tensor:
        sizes = states[1:].abs()
        before = torch.where(sizes > 0, sizes - self.bias, torch.ones_like(sizes))
        self.ratios = (sizes / before).unbind(0)
        self.all_phases = torch.sgn(states[1:])
        self.phases = self.all_phases.unbind(0)
        return torch.empty_like(drives)

    def backward(self, t: int, gradient: Tensor, incoming: Tensor, drive_gradient: Tensor, out: Tensor) -> None:
        turned = self.phases[t].conj() * gradient
        drive_gradient.copy_(self.phases[t] * torch.complex(turned.real, self.ratios[t] * turned.imag))
        torch.addmm(incoming, drive_gradient, self.conjugate, out=out)

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        matrix = drive_gradients.flatten(0, 1).mT @ states[:-1].flatten(0, 1).conj()
        assert self.all_phases is not None
        return matrix, (self.all_phases.conj() * drive_gradients).real.sum((0, 1))
