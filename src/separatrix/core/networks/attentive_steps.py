"""The two halves of a step of an attentive recurrent network, for rooms that follow gradients through them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class AttentiveSteps(Protocol):
    """How a state is made, and how it is mixed with what is remembered. A module offers it as ``attentive_steps()``.

    For implementers: both with operations that autograd follows, samples by themselves.
    """

    mix: tuple[float, float] | None
    """a and b of ``s = a h + b c``, if it is of that form."""

    def unit(self, x: Tensor, state: Tensor, carried: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Hidden state (batch, h) from an input, the macro-state before, and a carried vector where there is one."""

    def attend(self, before: Tensor, unit: Tensor, seen: Tensor, present: Tensor) -> Tensor:
        """Macro-state from that before, the new hidden state, and hidden states (batch, k, h) where ``present``."""

    def carried(self, batch: int) -> Tensor | None:
        """What is carried before the first step."""
