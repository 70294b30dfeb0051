"""Work on many points in portions, so that their Jacobians fit into memory together."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

_ENTRIES = 8_000_000
"""Numbers in the Jacobians of a portion, 64 MB."""


def portions(count: int, size: int) -> Iterator[slice]:
    """Slices of so many points whose Jacobians are (size, size); at least one slice, which may be empty."""
    length = max(1, _ENTRIES // max(1, size * size))
    yield from (slice(first, first + length) for first in range(0, max(count, 1), length))


def joined(parts: list[Tensor]) -> Tensor:
    """The results of portions one after the other."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)
