"""A state carried from batch to batch, cut off from the gradients of the batch before: truncated back-propagation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput


def detached(state: Any, device: torch.device | None = None) -> Any:
    """The same state without its gradients: tensors in tuples, lists and dictionaries; ``None`` and numbers as is.

    With ``device``, tensors are moved there.
    """
    if isinstance(state, Tensor):
        return state.detach() if device is None else state.detach().to(device)
    if state is None or isinstance(state, bool | int | float | str):
        return state
    if isinstance(state, Mapping):
        return {name: detached(part, device) for name, part in state.items()}
    if type(state) in (tuple, list):
        return type(state)(detached(part, device) for part in state)
    raise InvalidInput(
        f"a carried state must be made of tensors, numbers, tuples, lists and dictionaries; got {type(state).__name__}."
    )
