"""What a cache tells of the keys it holds, checked, as a table of queries and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.scalars import in_words


def presence(told: Sequence[tuple[int, Any]], batch: int, prefill: int) -> tuple[Tensor, ...] | None:
    """For each layer, which key was held after each query (batch, heads, t, t); ``None`` if the cache does not tell.

    Args:
        told: after each call of the model, the number of tokens seen and the cache's ``kept_positions``.
        batch: sequences.
        prefill: tokens of the first call, whose queries saw all before them.
    """
    if all(positions is None for _, positions in told):
        return None
    if any(positions is None for _, positions in told):
        raise InvalidInput(
            "kept_positions of the cache must be told after every call or never; it was None after some."
        )
    t, n_layers = told[-1][0], len(told[-1][1])
    layers = []
    for number in range(n_layers):
        tables = [(end, _checked(positions, number, n_layers, batch, end)) for end, positions in told]
        heads = tables[0][1].shape[1]
        table = torch.zeros(batch, heads, t, t + 1, dtype=torch.bool)
        table[:, :, : prefill - 1, :t] = torch.ones(t, t, dtype=torch.bool).tril()[: prefill - 1]
        for end, held in tables:
            if held.shape[1] != heads:
                raise InvalidInput(
                    f"kept_positions of the cache must have the same heads after every call; layer {number} had "
                    f"{heads}, then {held.shape[1]}."
                )
            table[:, :, end - 1].scatter_(2, torch.where(held < 0, t, held), True)
        layers.append(table[..., :t])
    return tuple(layers)


def _checked(positions: Any, number: int, n_layers: int, batch: int, end: int) -> Tensor:
    """The positions of one layer after a call."""
    if len(positions) != n_layers:
        raise InvalidInput(
            f"kept_positions of the cache must have an entry per layer after every call; it had {len(positions)}, then "
            f"{n_layers}."
        )
    held = positions[number]
    is_whole = isinstance(held, Tensor) and not held.is_floating_point() and not held.is_complex()
    if not is_whole or held.dtype == torch.bool or held.ndim != 3 or held.shape[0] != batch:
        shown = f"{tuple(held.shape)} of {held.dtype}" if isinstance(held, Tensor) else in_words(held)
        raise InvalidInput(
            f"kept_positions of the cache must be, for each layer, whole numbers ({batch}, heads, k); layer {number} "
            f"has {shown}."
        )
    held = held.cpu().to(torch.int64)
    if held.numel() and int(held.max()) >= end:
        raise InvalidInput(
            f"kept_positions of the cache names position {int(held.max())} in layer {number} after {end} "
            f"token{'s' if end > 1 else ''}; was the cache new?"
        )
    return held
