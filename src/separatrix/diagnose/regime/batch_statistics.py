"""Batch normalisation in comparisons of two states: the statistics are part of the function, not of the training.

Running statistics lag behind the weights and move without any training at all: a hundred forward passes change the
outputs of a network in evaluation mode, although no weight has moved. Where they differ between two states, each state
is given the statistics that its own weights produce on the data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput

from ..model_call import call_with, without_trace

_Norm = nn.modules.batchnorm._BatchNorm


def statistics_moved(model: nn.Module, start: Mapping[str, Tensor], end: Mapping[str, Tensor]) -> bool:
    """Whether running statistics differ between two states; raises for batch norms that keep none."""
    for name, module in model.named_modules():
        if isinstance(module, _Norm) and module.running_mean is None:
            raise InvalidInput(
                f"{name!r} normalises every batch by itself (track_running_stats=False), so the network is no function "
                "of one sample and has no tangent kernel."
            )
    return any(not torch.equal(start[name], end[name]) for name in _names(model))


def _names(model: nn.Module) -> list[str]:
    return [
        f"{prefix}.{leaf}" if prefix else leaf
        for prefix, module in model.named_modules()
        if isinstance(module, _Norm)
        for leaf in ("running_mean", "running_var")
    ]


def own_statistics(model: nn.Module, state: Mapping[str, Tensor], inputs: Any) -> dict[str, Tensor]:
    """The state with the running statistics that its weights produce on ``inputs``.

    Cost: one forward pass.
    """
    found: dict[str, Tensor] = {}

    def watch(name: str) -> Any:
        def keep(module: nn.Module, args: Any) -> None:
            value = args[0].detach()
            axes = [axis for axis in range(value.ndim) if axis != 1]
            found[f"{name}.running_mean".lstrip(".")] = value.mean(axes)
            found[f"{name}.running_var".lstrip(".")] = value.var(axes, correction=0)

        return keep

    handles = [
        module.register_forward_pre_hook(watch(name))
        for name, module in model.named_modules()
        if isinstance(module, _Norm)
    ]
    try:
        with torch.no_grad(), without_trace(model), of_the_batch(model):
            call_with(model, {name: value.detach().clone() for name, value in state.items()}, inputs)
    finally:
        for handle in handles:
            handle.remove()
    return {**state, **{name: value.to(state[name]) for name, value in found.items() if name in state}}


@contextlib.contextmanager
def of_the_batch(model: nn.Module, wanted: bool = True) -> Iterator[None]:
    """Batch norms take the statistics of the batch, as in training; nothing else changes."""
    norms = [module for module in model.modules() if isinstance(module, _Norm)] if wanted else []
    modes = [module.training for module in norms]
    for module in norms:
        module.training = True
    try:
        yield
    finally:
        for module, mode in zip(norms, modes, strict=True):
            module.training = mode
