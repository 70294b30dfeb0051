"""How many bytes a forward pass keeps for the way back: counted, not sampled, so that it is the same every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@final
class _Births(TorchDispatchMode):
    """Notes every storage that an operation makes, without keeping it alive."""

    def __init__(self) -> None:
        super().__init__()
        self.born: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and note what came of it."""
        made = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(made):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                reference = StorageWeakRef(storage)
                self.born[reference.cdata] = (reference, storage.nbytes())
        return made

    def alive(self) -> int:
        """Bytes of those that are still there."""
        return sum(size for reference, size in self.born.values() if not reference.expired())


def kept_bytes(forward: Callable[[], Any]) -> int:
    """Bytes of all storages made by a forward pass that are alive while its result, and so its graph, is held."""
    with _Births() as births:
        result = forward()
        kept = births.alive()
    del result
    return kept
