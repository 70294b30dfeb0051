"""Leaving somebody's model as it was, bit for bit, whatever happens in between.

The model is never copied: a forward patched on an instance would go on using the original's weights. Values are kept
aside and written back only where they differ, so that version counters of untouched tensors stay.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import Tensor, nn

_CONTAINERS = (dict, collections.OrderedDict, list, set)


@dataclasses.dataclass
class _KeptTensor:
    tensor: Tensor
    data: Tensor
    """The same memory under another name: restores a ``.data`` that was rebound."""
    value: Tensor
    requires_grad: bool
    grad: Tensor | None
    grad_value: Tensor | None

    def restore(self) -> None:
        if self.tensor.data_ptr() != self.data.data_ptr() or self.tensor.shape != self.data.shape:
            self.tensor.data = self.data
        if not _same_bits(self.tensor, self.value):
            self.tensor.data.copy_(self.value)
        if self.tensor.is_leaf and self.tensor.requires_grad != self.requires_grad:
            self.tensor.requires_grad_(self.requires_grad)
        if self.tensor.is_leaf and self.tensor.grad is not self.grad:
            self.tensor.grad = self.grad
        if self.grad is not None and self.grad_value is not None and not _same_bits(self.grad, self.grad_value):
            self.grad.data.copy_(self.grad_value)


def _keep(tensor: Tensor) -> _KeptTensor:
    grad = tensor.grad if tensor.is_leaf else None
    return _KeptTensor(
        tensor,
        tensor.data,
        tensor.detach().clone(),
        tensor.requires_grad,
        grad,
        None if grad is None else grad.detach().clone(),
    )


def _same_bits(a: Tensor, b: Tensor) -> bool:
    if a.is_sparse or b.is_sparse:
        return bool((a.to_dense() == b.to_dense()).all())
    if torch.equal(a, b):
        return not a.is_floating_point() or bool((torch.signbit(a) == torch.signbit(b)).all())
    if not (a.is_floating_point() or a.is_complex()):
        return False
    bytes_of = [part.detach().contiguous().reshape(-1).view(torch.uint8) for part in (a, b)]
    return torch.equal(*bytes_of)  # NaN is the same as itself here


class _KeptModule:
    """Attributes of a module, and what its containers hold (parameters, buffers, hooks, caches in lists)."""

    def __init__(self, module: nn.Module) -> None:
        self.names = vars(module)
        self.before = dict(self.names)
        self.held = [
            (value, value.copy()) for value in self.before.values() if type(value) in _CONTAINERS
        ]  # subclasses may do anything on assignment; they are left alone

    def restore(self) -> None:
        if list(self.names) != list(self.before) or any(
            self.names[key] is not value for key, value in self.before.items()
        ):
            self.names.clear()
            self.names.update(self.before)
        for container, content in self.held:
            if _same_content(container, content):
                continue
            container.clear()
            if isinstance(container, list):
                container.extend(content)
            else:
                container.update(content)


def _same_content(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return all(k is j or k == j for k, j in zip(a, b, strict=True)) and all(a[k] is b[k] for k in a)
    if isinstance(a, list):
        return all(x is y for x, y in zip(a, b, strict=True))
    return {id(x) for x in a} == {id(x) for x in b}


@contextlib.contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Whatever happens inside, also an interrupt: parameters, buffers, other tensors and attributes of modules, modes,
    ``requires_grad``, ``.grad``, hooks, and the random states of torch, numpy and Python are as before.

    Cost: a copy of every parameter and buffer, and one comparison at the end.
    """
    modules = [_KeptModule(module) for module in model.modules()]
    loose = [value for kept in modules for value in kept.before.values() if isinstance(value, Tensor)]
    unique = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers(), *loose)}
    tensors = [_keep(tensor) for tensor in unique.values()]
    states = random.getstate(), numpy.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    grad_mode = torch.is_grad_enabled()
    try:
        yield
    finally:
        for kept in modules:
            kept.restore()
        with torch.no_grad():
            for tensor in tensors:
                tensor.restore()
        torch.clear_autocast_cache()  # rounded copies of what was changed
        torch.set_grad_enabled(grad_mode)
        random.setstate(states[0])
        numpy.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


@contextlib.contextmanager
def moved(values: dict[Tensor, Tensor]) -> Iterator[None]:
    """Parameters hold other values inside and their own, bit for bit, afterwards."""
    kept = {tensor: tensor.detach().clone() for tensor in values}
    try:
        write(values)
        yield
    finally:
        write(kept)


def write(values: dict[Tensor, Tensor]) -> None:
    """Give parameters values that the next forward sees, also one under autocast, which keeps what it rounded."""
    for tensor, value in values.items():
        tensor.data.copy_(value)
    torch.clear_autocast_cache()
