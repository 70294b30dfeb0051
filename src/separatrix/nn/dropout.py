"""Dropout that leaves an equilibrium in place: one mask per solve and sample, drawn anew for the next solve."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options


@suggest_options
class VariationalDropout(nn.Module):
    """Drops entries with one mask for all evaluations of a solve.

    With ordinary dropout every evaluation of the cell is another map, which has no equilibrium. ``DEQ`` calls ``renew``
    at the start of each forward pass; elsewhere (a hand-written loop) call it yourself. In evaluation mode it is the
    identity. The mask is drawn from a stream of its own, whose state is part of ``state_dict``, so a resumed training
    run sees the masks it would have seen.

    Args:
        p: probability that an entry is dropped; the others are scaled by 1 / (1 - p).
        generator: seeds the stream of masks.

    Example:
        >>> dropout = VariationalDropout(0.5, generator=torch.Generator().manual_seed(0))
        >>> x = torch.ones(2, 3)
        >>> bool((dropout(x) == dropout(x)).all())
        True
    """

    def __init__(self, p: float, *, generator: torch.Generator) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise InvalidInput(f"p must lie in [0, 1); got {p}.")
        self.p = p
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        self._stream = torch.Generator().manual_seed(seed)
        self._mask: Tensor | None = None

    def renew(self) -> None:
        """Forget the mask; the next call draws another."""
        self._mask = None

    def forward(self, x: Tensor) -> Tensor:
        """x with the entries of this solve's mask dropped."""
        if not self.training or self.p == 0:
            return x
        if self._mask is None:
            kept = torch.rand(x.shape, generator=self._stream) >= self.p
            self._mask = kept.to(device=x.device, dtype=x.dtype) / (1 - self.p)
        if self._mask.shape != x.shape:
            raise InvalidInput(
                f"the mask of this solve has shape {tuple(self._mask.shape)}; got an input of shape {tuple(x.shape)}. "
                "Call renew() before a new input."
            )
        return x * self._mask

    def get_extra_state(self) -> Tensor:
        """The state of the stream of masks, for ``state_dict``."""
        return self._stream.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Continue the stream of masks from a saved state."""
        self._stream.set_state(state.cpu())

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"p={self.p}"


def renew_masks(*modules: nn.Module) -> None:
    """Make every ``VariationalDropout`` inside some modules draw a new mask at its next call."""
    for module in modules:
        for part in module.modules():
            if isinstance(part, VariationalDropout):
                part.renew()
