"""One step of a solve taken in: its residual, where the method wants it, and the two norms by which it is judged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import transforms_active

from .compiled import loops, runs_compiled


class Slots(NamedTuple):
    """Where a method keeps what it is told of a step."""

    residuals: Tensor
    """(batch, k, d), contiguous."""
    images: Tensor | None
    """The same for the images, or None if they are not kept."""
    place: int
    """Which of the k are next."""


def absorbed(z: Tensor, f: Tensor, slots: Slots | Tensor | None, host: bool) -> tuple[Tensor, Any, Any]:
    """f - z, its norms and those of f; both are written to their slots, f only where it is kept.

    Args:
        z: the states (batch, d).
        f: their images.
        slots: of the method, or a tensor for the residual alone, or None.
        host: whether norms are wanted as arrays.

    Compiled, everything is done in one pass over z and f; by torch in four or five.
    """
    if host and not isinstance(slots, Tensor) and runs_compiled(z):
        return _by_loops(z.contiguous(), f.contiguous(), slots)
    buffer = slots.residuals.select(1, slots.place) if isinstance(slots, Slots) else slots
    if buffer is None or not transforms_active():
        residual = torch.sub(f, z, out=buffer)
    else:
        residual = buffer.copy_(f - z)  # vmap knows no out=
    if isinstance(slots, Slots) and slots.images is not None:
        slots.images.select(1, slots.place).copy_(f)
    size, scale = (torch.linalg.vector_norm(part, dim=-1) for part in (residual, f))
    return (residual, size.numpy(), scale.numpy()) if host else (residual, size, scale)


def _by_loops(z: Tensor, f: Tensor, slots: Slots | None) -> tuple[Tensor, Any, Any]:
    if slots is None:
        slots = Slots(torch.empty_like(z).unsqueeze(1), None, 0)
    residuals = slots.residuals.numpy()
    found = numpy.empty((2, z.shape[0]), residuals.dtype)
    images = residuals[:0] if slots.images is None else slots.images.numpy()
    loops().absorb(z.numpy(), f.numpy(), residuals, images, slots.place, found)
    return slots.residuals.select(1, slots.place), found[0], found[1]
