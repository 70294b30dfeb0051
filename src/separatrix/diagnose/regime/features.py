"""What hidden layers put out on a batch, one row per sample."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..model_call import Pick, call_with, evaluation_mode, n_samples

_WITHOUT_FEATURES = (nn.Identity, nn.Flatten, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def hidden_features(model: nn.Module, state: dict[str, Tensor], inputs: Any, output: Pick) -> dict[str, Tensor]:
    """Outputs of the innermost modules in evaluation mode, flattened to (samples, features).

    Left out are modules that only rearrange or drop, and the module whose output is the model's own. A module called
    several times counts with its last call.

    Cost: one forward pass, and memory for all hidden outputs.
    """
    count = n_samples(inputs)
    seen: dict[str, Tensor] = {}

    def watch(name: str) -> Any:
        def keep(module: nn.Module, args: Any, result: Any) -> None:
            value = result[0] if isinstance(result, tuple) and result else result
            if isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1 and value.shape[0] == count:
                seen[name] = value.detach()

        return keep

    innermost = [
        (name, module)
        for name, module in model.named_modules()
        if name and next(module.children(), None) is None and not isinstance(module, _WITHOUT_FEATURES)
    ]
    handles = [module.register_forward_hook(watch(name)) for name, module in innermost]
    try:
        with torch.no_grad(), evaluation_mode(model):
            final = output(call_with(model, state, inputs))
    finally:
        for handle in handles:
            handle.remove()
    return {name: value.flatten(1) for name, value in seen.items() if not _same(value, final)}


def _same(value: Tensor, final: Tensor) -> bool:
    return value.numel() == final.numel() and torch.equal(value.flatten(), final.flatten())
