"""How many bytes a forward pass keeps for the way back: counted, not sampled, so that it is the same every time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def kept_bytes(forward: Callable[[], Any]) -> int:
    """Bytes of all storages that are alive because of a forward pass while its result is held.

    Tensors that autograd saved, whoever saved them, and tensors that Python objects hold (those of the result and of
    its graph) are counted once each; what was alive before is not.
    """
    gc.collect()
    before = {key for key, _ in _alive()}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    gc.collect()
    saved |= dict(_alive())
    del result
    return sum(size for key, size in saved.items() if key not in before)


def _alive() -> list[tuple[int, int]]:
    storages = (found.untyped_storage() for found in gc.get_objects() if issubclass(type(found), Tensor))
    return [(storage.data_ptr(), storage.nbytes()) for storage in storages]
