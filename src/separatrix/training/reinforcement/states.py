"""States of recurrent networks as lists of rows: picked, put together, begun anew.

A state is a tensor or a tuple of tensors whose second axis is the batch. Memories that grow have a third axis of
places, of different length at different times; they are filled up with empty places in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def _parts(state: Any) -> tuple[Tensor, ...]:
    return tuple(state) if isinstance(state, tuple | list) else (state,)


def _like(state: Any, parts: Sequence[Tensor]) -> Any:
    return tuple(parts) if isinstance(state, tuple | list) else parts[0]


def mapped(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    """The function applied to every tensor."""
    return _like(state, [function(part) for part in _parts(state)])


def rows_of(state: Any, samples: Tensor) -> Any:
    """Some samples of a state."""
    return mapped(lambda part: part[:, samples], state)


def together(states: Sequence[Any]) -> Any:
    """Samples of several states in one."""
    return _like(states[0], [torch.cat(_same_places(parts), 1) for parts in zip(*map(_parts, states), strict=True)])


def begun_anew(state: Any, initial: Any, ended: Tensor) -> Any:
    """The initial state where an episode ended, the state elsewhere."""
    parts = []
    for pair in zip(_parts(state), _parts(initial), strict=True):
        now, first = _same_places(pair)
        parts.append(torch.where(ended.view(1, -1, *(1,) * (now.ndim - 2)), first, now))
    return _like(state, parts)


def trimmed(state: Any, initial: Any) -> Any:
    """Without places that are empty in every sample, for memories that grow; others keep all their places."""
    parts = _parts(state)
    for part, first in zip(parts, _parts(initial), strict=True):
        if not part.is_floating_point() and first.ndim == 3 and first.shape[2] == 0:
            places = (part >= 0).any(1).squeeze(0)
            return _like(
                state,
                [
                    own[:, :, places] if own.shape[2:3] == part.shape[2:] and _grows(own, begin) else own
                    for own, begin in zip(parts, _parts(initial), strict=True)
                ],
            )
    return state


def _grows(part: Tensor, initial: Tensor) -> bool:
    return initial.ndim >= 3 and initial.shape[2] == 0


def _same_places(parts: Sequence[Tensor]) -> list[Tensor]:
    """Filled up in front to the largest number of places; steps of empty places are -1."""
    if parts[0].ndim < 3 or len({part.shape[2] for part in parts}) == 1:
        return list(parts)
    most = max(part.shape[2] for part in parts)
    filled = []
    for part in parts:
        shape = (*part.shape[:2], most - part.shape[2], *part.shape[3:])
        empty = part.new_zeros(shape) if part.is_floating_point() else part.new_full(shape, -1)
        filled.append(torch.cat([empty, part], 2))
    return filled
