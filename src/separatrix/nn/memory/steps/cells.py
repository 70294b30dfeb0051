"""From what enters a unit to its hidden state: the two cells that attentive networks are built on."""

from __future__ import annotations

import abc
from typing import final

import torch
from torch import Tensor

from ...recurrent.steps.elman import AbstractNonlinearity


class AbstractCell(abc.ABC):
    """``h, carried = cell(pre, carried)``; one object serves one forward or one backward pass."""

    n_parts: int
    """How many times the hidden size the pre-activation is."""
    has_carry: bool
    bias: Tensor | None

    @abc.abstractmethod
    def advance(self, pre: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """With operations that autograd follows."""

    @abc.abstractmethod
    def forward(self, pre: Tensor, carried: Tensor | None, hidden: Tensor, out: Tensor | None) -> None:
        """The same into ``hidden`` and ``out``; ``pre`` may be overwritten."""

    @abc.abstractmethod
    def prepare_backward(self, pre: Tensor, hidden: Tensor, carried: Tensor | None) -> None:
        """Turn all pre-activations (t, batch, parts) into what the way back multiplies by; ``carried`` has t + 1."""

    @abc.abstractmethod
    def backward(self, t: int, by_hidden: Tensor, by_carried: Tensor | None, by_pre: Tensor) -> None:
        """Gradient by the pre-activation, written over what was prepared there; ``by_carried`` becomes the earlier."""

    def by_bias(self, by_pre: Tensor, hidden: Tensor) -> Tensor | None:
        """Gradient by the bias of the nonlinearity, if it has one."""
        return None


@final
class ElmanCell(AbstractCell):
    """``h = phi(pre; b)``."""

    n_parts, has_carry = 1, False

    def __init__(self, phi: AbstractNonlinearity, bias: Tensor | None) -> None:
        self.phi, self.bias = phi, bias

    def advance(self, pre: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """phi."""
        return self.phi.value(pre, self.bias), None

    def forward(self, pre: Tensor, carried: Tensor | None, hidden: Tensor, out: Tensor | None) -> None:
        """phi in place."""
        hidden.copy_(pre)
        self.phi.apply_(hidden, self.bias)

    def prepare_backward(self, pre: Tensor, hidden: Tensor, carried: Tensor | None) -> None:
        """Slopes."""
        pre.copy_(self.phi.slope(hidden))

    def backward(self, t: int, by_hidden: Tensor, by_carried: Tensor | None, by_pre: Tensor) -> None:
        """Times the slope."""
        by_pre.mul_(by_hidden)

    def by_bias(self, by_pre: Tensor, hidden: Tensor) -> Tensor | None:
        """The sign of the result, for modReLU."""
        return None if self.bias is None else (by_pre * torch.sgn(hidden)).sum((0, 1))


@final
class LstmCell(AbstractCell):
    """``i, f, g, o`` side by side; ``c' = f c + i g``, ``h = o tanh(c')``."""

    n_parts, has_carry, bias = 4, True, None

    def __init__(self) -> None:
        self.to_carried: Tensor | None = None
        self.forget: Tensor | None = None

    def advance(self, pre: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """By autograd."""
        assert carried is not None
        enter, forget, new, leave = pre.chunk(4, -1)
        carried = torch.sigmoid(forget) * carried + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(carried), carried

    def forward(self, pre: Tensor, carried: Tensor | None, hidden: Tensor, out: Tensor | None) -> None:
        """Into buffers."""
        assert carried is not None
        assert out is not None
        enter, forget, new, leave = pre.chunk(4, -1)
        torch.mul(carried, forget.sigmoid_(), out=out)
        out.addcmul_(enter.sigmoid_(), new.tanh_())
        torch.tanh(out, out=hidden)
        hidden.mul_(leave.sigmoid_())

    def prepare_backward(self, pre: Tensor, hidden: Tensor, carried: Tensor | None) -> None:
        """Factors of the four gates in their places, and two more."""
        assert carried is not None
        enter, forget, new, leave = pre.chunk(4, -1)
        enter.sigmoid_()
        forget.sigmoid_()
        new.tanh_()
        leave.sigmoid_()
        end = torch.tanh(carried[1:])
        self.to_carried = leave * (1 - end * end)
        self.forget = forget.clone()
        leave.mul_(1 - leave).mul_(end)
        forget.mul_(1 - forget).mul_(carried[:-1])
        by_new = enter * (1 - new * new)
        enter.mul_(1 - enter).mul_(new)
        new.copy_(by_new)

    def backward(self, t: int, by_hidden: Tensor, by_carried: Tensor | None, by_pre: Tensor) -> None:
        """Through the four gates."""
        assert by_carried is not None
        assert self.to_carried is not None
        assert self.forget is not None
        size = by_hidden.shape[-1]
        by_carried.addcmul_(by_hidden, self.to_carried[t])
        by_pre[:, : 3 * size].unflatten(-1, (3, size)).mul_(by_carried.unsqueeze(1))
        by_pre[:, 3 * size :].mul_(by_hidden)
        by_carried.mul_(self.forget[t])
