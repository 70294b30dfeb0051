r"""The step of most recurrent networks, :math:`h' = k h + r\,\phi(V h + x; b)`; in the usual case k = 0 and r = 1."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, final

import torch
from torch import Tensor

from separatrix.core.names import resolve

from .elman_kernels import ComplexModReluKernel, ElmanKernel
from .modrelu import modrelu
from .step import AbstractSequenceKernel, AbstractStep, Weights


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
        """In place: the size times the sign, which is 0 at 0."""
        assert bias is not None
        if a.is_complex():
            size = torch.abs(a, out=buffer).add_(bias).relu_()
            a.sgn_().mul_(size)
        else:
            sign = torch.sgn(a, out=buffer)
            torch.addcmul(bias, a, sign, out=a).relu_().mul_(sign)

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

    def kernel(self, weights: Weights) -> AbstractSequenceKernel | None:
        """By hand; complex states for modReLU and linear only."""
        is_complex = weights[0].is_complex()
        if is_complex and (self.keep != 0 or self.rate != 1):
            return None
        if is_complex and self.phi.name == "modrelu":
            return ComplexModReluKernel(self, weights)
        return None if is_complex else ElmanKernel(self, weights)

    def compiled_kernel(self, weights: Weights) -> AbstractSequenceKernel | None:
        """For real states; a nonlinearity of somebody else has none."""
        if weights[0].is_complex() or NONLINEARITIES.get(self.phi.name) is not self.phi:
            return None
        from .compiled import CompiledElmanKernel  # stands above this file

        return CompiledElmanKernel(self, weights)
