"""Where samples begin to see each other: the first operation whose rows change when another sample does."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as tree
from torch.utils._python_dispatch import TorchDispatchMode

from ..model_call import evaluation_mode
from .operations import Occurrence
from .places import ModuleStack, following, source_line
from .subject import Subject, open_kernels

_RELATIVE = 1e-5


class _RowWatch(TorchDispatchMode):
    """One number per sample of every result whose first axis counts samples."""

    def __init__(self, n: int, stack: ModuleStack) -> None:
        super().__init__()
        self.n, self.stack = n, stack
        self.seen: list[tuple[Occurrence, Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, tuple | list) and result else result
        if isinstance(first, Tensor) and first.is_floating_point() and first.ndim > 1 and first.shape[0] == self.n:
            rows = first.detach().flatten(1).double()
            weights = torch.arange(1, rows.shape[1] + 1, dtype=torch.float64, device=rows.device).sin()
            event = Occurrence(func._schema.name.partition("::")[2], self.stack.here, source_line())
            self.seen.append((event, rows @ weights))
        return result


def first_mixing(subject: Subject, changed: int) -> Occurrence | None:
    """The first operation, in evaluation mode, at which a row other than the changed sample's is another; None if rows
    are nowhere seen to, or if the two passes do not run the same operations. Cost: two forwards."""
    plain, other = _watched(subject, None), _watched(subject, changed)
    kept = torch.arange(subject.sample.n) != changed
    for (event, before), (again, after) in zip(plain, other, strict=False):
        if event.op != again.op:
            return None
        moved = (before - after).abs()[kept]
        if bool((moved > _RELATIVE * before.abs()[kept].clamp_min(1e-12)).any()):
            return event
    return None


def _watched(subject: Subject, changed: int | None) -> list[tuple[Occurrence, Tensor]]:
    n = subject.sample.n

    def exchanged(value: Any) -> Any:
        if changed is None or not isinstance(value, Tensor) or not value.ndim or value.shape[0] != n:
            return value
        value = value.detach().clone()
        value[changed] = value[(changed + 1) % n] if not value.is_floating_point() else -value[(changed + 1) % n]
        return value

    args, kwargs, _ = subject.sample.leaves(direct=subject.direct)
    args, kwargs = tree.tree_map(exchanged, (args, kwargs))
    with evaluation_mode(subject.model), torch.no_grad(), open_kernels(), following(subject.model) as stack:
        watch = _RowWatch(n, stack)
        with watch:
            subject.call(args, kwargs)
    return watch.seen
