"""The same model in double precision for a moment, its own numbers bit for bit afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as tree

from .reductions import is_plain
from .samples import Sample

_WIDER = {
    torch.float32: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex64: torch.complex128,
}


def widened(value: Any) -> Any:
    """A tensor in double precision; whole numbers and everything else as they are."""
    if not isinstance(value, Tensor) or value.dtype not in _WIDER or not is_plain(value):
        return value
    return value.detach().to(_WIDER[value.dtype])


def widened_sample(sample: Sample) -> Sample:
    """The sample in double precision."""
    args, kwargs = tree.tree_map(widened, (sample.args, sample.kwargs))
    return dataclasses.replace(sample, args=args, kwargs=kwargs)


@contextlib.contextmanager
def in_double(model: nn.Module) -> Iterator[None]:
    """Parameters and buffers hold doubles inside, and what the model makes by itself is double too.

    The model is not copied: its tensors point at other memory and back again, also if something raises.
    Cost: twice the weights.
    """
    unique = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    kept = [(tensor, tensor.data) for tensor in unique.values() if tensor.dtype in _WIDER]
    default = torch.get_default_dtype()
    try:
        for tensor, data in kept:
            tensor.data = widened(data)
        torch.set_default_dtype(torch.float64)
        yield
    finally:
        torch.set_default_dtype(default)
        for tensor, data in kept:
            tensor.data = data
