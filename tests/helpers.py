"""What tests share: the mark that pairs a closed form with an independent check, seeds, and counted work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_STRIDE = 1_000_003
_run = 0


def checks(*formulas: Callable[..., Any], by: str) -> pytest.MarkDecorator:
    """Mark a test as an independent check of closed forms, ``by`` the route it takes."""
    names = tuple(function.formula.name for function in formulas)  # type: ignore[attr-defined]
    return pytest.mark.checks(names, by=by)


def use_seed(number: int) -> None:
    """Set the seed of this run of the tests (``--seed``); 0 is the one of every day."""
    global _run
    _run = number


def seeded(number: int) -> torch.Generator:
    """Generator ``number`` of this run. What a test asserts must hold whatever ``--seed`` is."""
    return torch.Generator().manual_seed(number + _STRIDE * _run)


class _Counted(TorchDispatchMode):
    """Adds up the numbers that torch operations produce."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.elements += sum(leaf.numel() for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))
        return result


def elements_computed(work: Callable[[], object]) -> int:
    """How many numbers the torch operations of a call produce: a cost that no busy machine changes."""
    with _Counted() as counted:
        work()
    return counted.elements
