"""Attention, found by what is computed: a softmax whose result multiplies something else, or a fused call."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

_SOFTMAX = frozenset(("_softmax", "_safe_softmax"))
_CARRIES = frozenset(["clone", "native_dropout", "mul", "mul_", "_to_copy", "contiguous", "masked_fill", "nan_to_num"])
_PRODUCTS = frozenset(("bmm", "baddbmm", "mm"))
_FUSED = "_scaled_dot_product_"
_MASKED = 5e3
"""A score this far below the largest of its row stands for a mask."""
_MOST = 1 << 21
"""Scores of one layer that are looked at."""


@dataclasses.dataclass(eq=False)
class AttentionRow:
    """One attention layer of one forward pass."""

    entropy: float | None
    """Mean over queries of the entropy over the largest possible one, over the keys that are not masked."""
    mask: Literal["none", "causal", "future", "other"]
    axis: Literal["keys", "queries", "neither", "unknown"]
    n_keys: int
    event: Any


@dataclasses.dataclass
class _Tagged:
    storage: int
    alive: Tensor
    row: AttentionRow
    dropped: bool
    ran: tuple[int, tuple[int, ...]] | None = None
    """Axis and shape of the softmax, while nothing but copies lies behind it."""


class SoftmaxWatch:
    """Follows the results of softmax until they are multiplied with something."""

    def __init__(self) -> None:
        self.rows: list[AttentionRow] = []
        self._open: list[_Tagged] = []

    def note(self, name: str, args: Any, kwargs: Any, y: Tensor, event: Callable[[], Any]) -> None:
        """Look at one operation."""
        if name.startswith(_FUSED) and y.ndim == 4:
            self.rows.append(_fused(args, kwargs, event()))
        elif name in _SOFTMAX and y.ndim >= 2:
            axis = int(args[1]) % y.ndim
            row = _row(args[0].detach(), y.detach(), axis, event())
            self._tag(y, row, dropped=False, ran=(axis, tuple(y.shape)))
        elif self._open and name in _CARRIES:
            source = self._tagged(args[0])
            if source is not None and y.shape == args[0].shape:
                dropped = source.dropped or name in ("native_dropout", "mul", "mul_")
                copied = name in ("clone", "_to_copy", "contiguous")
                self._tag(y, source.row, dropped=dropped, ran=source.ran if copied else None)
        elif self._open and name in _PRODUCTS:
            for side, part in enumerate(args[-2:]):
                source = self._tagged(part)
                if source is not None:
                    self._multiplied(source, part.detach(), left=side == 0)

    def _tag(
        self, y: Tensor, row: AttentionRow, *, dropped: bool, ran: tuple[int, tuple[int, ...]] | None = None
    ) -> None:
        self._open.append(_Tagged(y.untyped_storage()._cdata, y, row, dropped, ran))
        del self._open[:-6]

    def _tagged(self, part: Any) -> _Tagged | None:
        if not isinstance(part, Tensor):
            return None
        storage = part.untyped_storage()._cdata
        return next((tag for tag in reversed(self._open) if tag.storage == storage), None)

    def _multiplied(self, tag: _Tagged, part: Tensor, *, left: bool) -> None:
        if tag.row in self.rows:
            return
        self.rows.append(tag.row)
        if tag.dropped:
            tag.row.axis = "unknown"
            return
        inner, outer = (-1, -2) if left else (-2, -1)
        if _sums_to_one(part, inner):
            tag.row.axis = "keys"
        elif _sums_to_one(part, outer):
            tag.row.axis = "queries"
        elif tag.ran is not None and _is_elsewhere(*tag.ran, tuple(part.shape)):
            tag.row.axis = "neither"


def _is_elsewhere(axis: int, shape: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether the softmax ran over an axis in front of the two that are multiplied (heads, samples)."""
    return len(shape) > 2 and axis < len(shape) - 2 and shape[axis] > 1 and part[-2:] == shape[-2:]


def _sums_to_one(part: Tensor, axis: int) -> bool:
    sums = part.double().sum(axis)
    return bool(((sums - 1).abs().min(sums.abs()) < 1e-3).all()) and bool((sums > 0.5).any())


def _row(scores: Tensor, p: Tensor, axis: int, event: Any) -> AttentionRow:
    if p.numel() > _MOST and p.shape[0] > 1:
        keep = max(1, p.shape[0] * _MOST // p.numel())
        if axis != 0:
            scores, p = scores[:keep], p[:keep]
    scores, p = scores.movedim(axis, -1).double(), p.movedim(axis, -1).double()
    seen = scores > scores.amax(-1, keepdim=True).clamp_min(-1e300) - _MASKED
    seen &= torch.isfinite(scores)
    return AttentionRow(_entropy(p, seen), _mask(seen), "unknown", int(p.shape[-1]), event)


def _entropy(p: Tensor, seen: Tensor) -> float | None:
    most = seen.sum(-1).double().log()
    real = most > 0
    if not bool(real.any()):
        return None
    entropy = -(torch.xlogy(p, p)).nan_to_num(0.0).sum(-1)
    return float((entropy[real] / most[real]).mean())


def _mask(seen: Tensor) -> Literal["none", "causal", "future", "other"]:
    n = seen.shape[-1]
    if bool(seen.all()):
        return "none"
    if seen.ndim < 2 or seen.shape[-2] != n or n < 3:
        return "other"
    flat = seen.reshape(-1, n, n)
    above = torch.ones(n, n, dtype=torch.bool, device=seen.device).triu(1)
    ahead, behind = bool((flat & above).any()), bool((flat & above.T).any())
    if behind and not ahead:
        return "causal"
    return "future" if ahead and not behind else "other"


def _fused(args: Any, kwargs: Any, event: Any) -> AttentionRow:
    """The scores of a fused call, computed again from queries and keys of a few samples."""
    q, k = args[0][:4].detach().double(), args[1][:4].detach().double()
    if q.shape[1] != k.shape[1]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scale = kwargs.get("scale")
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    flags = [part for part in (*args[3:], *kwargs.values()) if isinstance(part, bool)]
    if flags and flags[-1]:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(ahead, -math.inf)
    mask = kwargs.get("attn_mask")
    mask = next((part for part in args[3:] if isinstance(part, Tensor) and part.ndim >= 2), mask)
    if isinstance(mask, Tensor):
        mask = mask[: len(scores)] if mask.ndim == 4 and mask.shape[0] > 1 else mask
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.double()
    row = _row(scores, scores.softmax(-1), scores.ndim - 1, event)
    row.axis = "keys"
    return row
