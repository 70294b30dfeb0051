"""Decisions of a program that depend on numbers, also under the transforms of ``torch.func``.

Inside ``torch.func.vmap`` a tensor stands for many, and Python cannot ask it a question. A loop that runs until every
one of them is finished may still be mapped: what it needs to know is a fact about all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_active: Callable[[], bool] = torch._C._are_functorch_transforms_active
"""Asked some ten times a step by solvers, which is why no function stands between."""


def transforms_active() -> bool:
    """Whether a transform of ``torch.func`` is being applied to the caller."""
    return _active()


def is_mapped(tensor: Tensor) -> bool:
    """Whether ``torch.func.vmap`` hides an axis of a tensor, also below other transforms."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def any_true(mask: Tensor) -> bool:
    """Whether an entry is true, for any member of a mapped axis."""
    return bool((exposed(mask) if _active() else mask).any())


def all_true(mask: Tensor) -> bool:
    """Whether every entry is true, for all members of a mapped axis."""
    return bool((exposed(mask) if _active() else mask).all())


def exposed(tensor: Tensor) -> Tensor:
    """The tensor itself; with axes that ``torch.func.vmap`` hides as its first ones. Carries no gradient."""
    if not transforms_active():
        return tensor
    out: Tensor = _Exposed.apply(tensor.detach())
    return out


class _Exposed(torch.autograd.Function):
    @staticmethod
    def forward(tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None], tensor: Tensor) -> tuple[Tensor, None]:
        hidden = in_dims[0]
        return _Exposed.apply(tensor if hidden is None else tensor.movedim(hidden, 0)), None
