"""A step that is known only by being called: derivatives by autograd, and probes of what it is."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, SeparatrixError, spawn

from .base import AbstractRecurrentMap
from .packing import Packing

LARGE = 512
"""Entries of a state from which on a Jacobian by autograd gets a warning: it costs as many backward passes."""


@final
class CalledMap(AbstractRecurrentMap):
    """Somebody's ``step(x, state) -> state``, rows independent of each other.

    Args:
        name: for messages.
        step: the function, batch first.
        packing: layout of its states.
        input_size: features of an input.
        input_dtype: precision in which it wants its input.
        blocks: square matrices of its own, if it offers any.
        kind: what it is, in words.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[Tensor, Any], Any],
        packing: Packing,
        input_size: int,
        input_dtype: torch.dtype,
        *,
        blocks: Mapping[str, Tensor] | None = None,
        kind: str = "a step of its own",
    ) -> None:
        self.name, self.kind, self.input_size = name, kind, input_size
        self._step, self._packing, self._input_dtype = step, packing, input_dtype
        self._blocks = dict(blocks or {})
        self.state_size = self.output_size = packing.size
        self.rounding = max(packing.rounding, torch.finfo(input_dtype).eps)
        self.gated = True  # nobody knows, so nobody may judge it by a matrix
        if self.state_size > LARGE:
            warnings.warn(
                f"{name} has {self.state_size} numbers in its state; a Jacobian by autograd takes as many backward "
                "passes and may be slow.",
                stacklevel=2,
            )

    @property
    def blocks(self) -> Mapping[str, Tensor]:
        """Matrices that the module itself calls recurrent."""
        return self._blocks

    def advance(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state."""
        with torch.no_grad():
            return self._call(x, state)

    def _call(self, x: Tensor, state: Tensor) -> Tensor:
        after = self._step(x.to(self._input_dtype), self._packing.unpack(state))
        packed = self._packing.pack(after)
        if packed.shape != state.shape:
            raise InvalidInput(
                f"{self.name} must return a state of the form it is given, {state.shape[-1]} numbers a sample; got "
                f"shape {tuple(packed.shape)} for {len(state)} samples."
            )
        return packed

    def jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """One backward pass per entry of the state."""
        return self._derivative(x, state, by_state=True)

    def input_jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """One backward pass per entry of the state."""
        return self._derivative(x, state, by_state=False)

    def _derivative(self, x: Tensor, state: Tensor, *, by_state: bool) -> Tensor:
        leaf = (state if by_state else x).detach().clone().requires_grad_(True)
        with torch.enable_grad():
            after = self._call(*((x, leaf) if by_state else (leaf, state)))
            if not after.requires_grad:
                return torch.zeros(*after.shape, leaf.shape[-1], dtype=torch.float64)
            rows = []
            for place in range(after.shape[-1]):
                (row,) = torch.autograd.grad(after[:, place].sum(), leaf, retain_graph=True, allow_unused=True)
                rows.append(torch.zeros_like(leaf) if row is None else row)
        return torch.stack(rows, dim=1).detach()


def probed(found: CalledMap) -> CalledMap:
    """The map itself, if it behaves as one: it can be called, gives the same answer twice, and keeps samples apart.

    Raises:
        InvalidInput: it fails, gives nothing finite, draws random numbers or remembers calls, or its samples depend on
            each other.
    """
    generator = spawn(0, "diagnose", "probe")
    x = torch.randn(3, found.input_size, generator=generator, dtype=torch.float64)
    state = 0.3 * torch.randn(3, found.state_size, generator=generator, dtype=torch.float64)
    try:
        together, again = found.advance(x, state), found.advance(x, state)
        alone = found.advance(x[:1], state[:1])
    except SeparatrixError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{found.name} must take an input (batch, {found.input_size}) and a state and return the next state; it "
            f"failed ({type(error).__name__}: {error})."
        ) from error
    if not bool(torch.isfinite(together).any()):
        raise InvalidInput(f"{found.name} must give finite states; from small states and inputs it gives none.")
    limit = 1e3 * found.rounding * float(together.abs().max().clamp_min(1.0))
    if float((together - again).abs().max()) > limit:
        raise InvalidInput(
            f"{found.name} must be a function of input and state; two equal calls differ (dropout, or a memory)."
        )
    if float((together[:1] - alone).abs().max()) > limit:
        raise InvalidInput(f"{found.name} must keep the samples of a batch apart; the first one depends on the others.")
    return found


def in_double(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode and double precision; the module itself stays as it is."""
    try:
        own = copy.deepcopy(module)
    except Exception:
        raise InvalidInput(
            f"{type(module).__name__} cannot be copied, so it cannot be looked at in double precision; pass a function "
            "step(x, state) that calls it."
        ) from None
    for parameter in own.parameters():
        parameter.requires_grad_(False)
    return own.eval().to("cpu").double()
