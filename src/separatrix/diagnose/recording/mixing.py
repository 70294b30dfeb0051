"""Where samples begin to see each other: the first operation whose rows change when another sample does."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as tree

from ..model_call import evaluation_mode
from .operations import Occurrence, OperationWatch
from .places import ModuleStack, following, source_line
from .reductions import is_plain
from .subject import Subject, open_kernels

_RELATIVE = 1e-5
_BY_INDEX = frozenset([
    "index", "index_select", "gather", "index_add", "index_add_", "index_put", "index_put_", "index_copy",
    "index_copy_", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_",
])  # fmt: skip
_BY_MATRIX = frozenset(["mm", "bmm", "addmm", "baddbmm", "_sparse_mm", "_sparse_addmm"])
_COPIES = frozenset(["_to_copy", "clone", "add", "div", "mul", "sub", "where", "nan_to_num", "_sparse_softmax"])


class _RowWatch(OperationWatch):
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


class _RelationWatch(OperationWatch):
    """Looks for rows that are moved along whole numbers, or along a square matrix, which the sample itself holds."""

    def __init__(self, n: int, given: list[Tensor], weights: set[int]) -> None:
        super().__init__()
        self.n, self.weights, self.found = n, weights, ""
        self.alive = list(given)
        self.marked = {_identity(tensor) for tensor in given}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.partition("::")[2]
        tensors = [leaf for leaf in tree.tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor)]
        if not tensors or not any(_identity(part) in self.marked for part in tensors):
            return result
        moved = next((part for part in tensors if self._is_rows(part)), None)
        if name in _BY_INDEX and moved is not None and tensors[0] is moved:
            self.found = self.found or "indices"
        if name in _BY_MATRIX and moved is not None:
            square = (part for part in tensors if _identity(part) in self.marked and part.shape[-2:] == (self.n,) * 2)
            self.found = "a matrix" if next(square, None) is not None and not self.found else self.found
        if name in _COPIES and isinstance(result, Tensor):
            self.alive.append(result)
            self.marked.add(_identity(result))
        return result

    def _is_rows(self, part: Tensor) -> bool:
        """Numbers of the samples themselves, one row for each."""
        own = part.ndim > 1 and part.shape[0] == self.n and part.is_floating_point()
        return own and _identity(part) not in self.marked and _identity(part) not in self.weights


def _identity(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata) if is_plain(tensor) else id(tensor)


def related_by_sample(subject: Subject) -> str:
    """What in the sample says which rows belong together: "indices" of rows (the edges of a graph), "a matrix" between
    rows (its adjacency), or nothing. Only what the forward uses so counts. Cost: a forward."""
    args, kwargs, _ = subject.sample.leaves(direct=subject.direct)
    given = [leaf for leaf in tree.tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    n = subject.sample.n
    relations = [
        part for part in given[1:]
        if (part.shape[:1] != (n,) and not part.is_floating_point() and part.ndim) or tuple(part.shape) == (n, n)
    ]  # fmt: skip
    if not relations:
        return ""
    watch = _RelationWatch(n, relations, set(subject.storages()))
    with evaluation_mode(subject.model), torch.no_grad(), open_kernels(), watch:
        subject.call(args, kwargs)
    return watch.found
