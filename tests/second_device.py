"""A second device made in Python: tensors that say they lie elsewhere, and refuse to meet those of the processor.

As a program it trains one model on the processor and one there, through the lab's one rule, and prints what came of it.
Apart from the tests, because a device is registered for the whole process.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "elsewhere"


class Elsewhere(torch.Tensor):
    """A tensor of that device; its numbers lie in ``raw``, on the processor."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> Elsewhere:
        made = torch.Tensor._make_wrapper_subclass(
            cls, raw.shape, strides=raw.stride(), dtype=raw.dtype, device=f"{NAME}:0"
        )
        made.raw = raw
        return made

    def __init__(self, raw: torch.Tensor) -> None:
        pass

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return computed(func, args, kwargs or {})


def computed(func: Any, args: Any, options: dict[str, Any]) -> Any:
    tensors = [leaf for leaf in tree_leaves((args, options)) if isinstance(leaf, torch.Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, Elsewhere)]
    here = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere) and tensor.ndim]
    if here and there and "copy" not in func.__name__:
        raise RuntimeError(f"{func.__name__} meets tensors of two devices")
    device = options.get("device")
    options = {**options, "device": torch.device("cpu")} if device is not None else options
    plain = tree_map(lambda leaf: leaf.raw if isinstance(leaf, Elsewhere) else leaf, (args, options))
    answer = func(*plain[0], **plain[1])
    if device is not None and torch.device(device).type == "cpu":
        return answer.clone()
    if func.__name__.split(".")[0].endswith("_") and there:
        return args[0]
    return tree_map(lambda leaf: Elsewhere(leaf) if isinstance(leaf, torch.Tensor) else leaf, answer)


def register() -> Any:
    _setup_privateuseone_for_python_backend(NAME)
    getattr(torch, NAME).get_amp_supported_dtype = lambda: [torch.float16]
    library = torch.library.Library("_", "IMPL")
    library.fallback(lambda func, *args, **options: computed(func, args, options), "PrivateUse1")
    return library


def main() -> None:
    library = register()
    from separatrix.core import offered_device, spawn
    from separatrix.nn import ExpRNN, SequenceModel
    from separatrix.tasks import Copy, StreamedBatches
    from separatrix.training import TrainingSettings, train

    task = Copy(4)

    def trained(find: Any) -> dict[str, Any]:
        core = ExpRNN(task.n_inputs, 6, generator=spawn(0, "core"))
        model = SequenceModel(core, task.n_outputs, generator=spawn(0, "head"))
        met: list[str] = []

        def loss(m: Any, batch: Any) -> torch.Tensor:
            met.append(next(m.parameters()).device.type)
            return task.loss(m(batch.inputs), batch)

        batches, settings = StreamedBatches(task, 3, 0), TrainingSettings(n_steps=3, lr=1e-2, measure_every=2)
        with offered_device(find) as offer:
            run = train(model, batches, loss, settings, measure=lambda m: {"x": m(batches(9).inputs).square().mean()})
        return {
            "met": sorted(set(met)),
            "used": offer.used,
            "after": next(model.parameters()).device.type,
            "losses": run.history.column("loss"),
            "measured": run.history.column("x"),
        }

    print(json.dumps([trained(lambda: "cpu"), trained(lambda: f"{NAME}:0")]))
    del library


if __name__ == "__main__":
    main()
