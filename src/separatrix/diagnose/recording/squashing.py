"""Units that no sample switches on, and squashing functions that are driven into their flat ends."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from ..findings.thresholds import threshold

_SURE = frozenset(("relu", "relu_", "threshold", "threshold_"))
_PERHAPS = frozenset([
    "clamp_min", "clamp_min_", "clamp", "clamp_", "hardtanh", "hardtanh_", "maximum", "where", "mul", "mul_",
])  # fmt: skip
_SQUASHING = frozenset(("tanh", "tanh_", "sigmoid", "sigmoid_"))


@dataclasses.dataclass
class Rectified:
    """One rectification: which units were ever on, over how many values."""

    on: Tensor
    values: int
    shape: tuple[int, ...]

    @property
    def dead(self) -> float:
        """Share of units that were never on."""
        return 1.0 - float(self.on.double().mean())


@dataclasses.dataclass
class Squashed:
    """One squashing function: values in its flat ends, and all of them."""

    flat: int = 0
    count: int = 0
    last_address: int = 0

    @property
    def share(self) -> float:
        """Share in the flat ends."""
        return self.flat / max(self.count, 1)


def before(name: str, args: Any) -> Tensor | None:
    """What may be rectified, kept if the operation overwrites it."""
    if name not in _PERHAPS:
        return None
    parts = [part for part in args if isinstance(part, Tensor) and part.is_floating_point() and part.ndim > 0]
    if not parts:
        return None
    x = max(parts, key=lambda part: part.numel())
    if name == "mul" or name == "mul_":
        x = next((part for part in parts if bool((part.reshape(-1)[:64] < 0).any())), x)
    return x.clone() if name.endswith("_") else x


class Units:
    """By kind of operation, module and weight before it."""

    def __init__(self) -> None:
        self.rectified: dict[tuple[Any, ...], Rectified] = {}
        self.squashed: dict[tuple[Any, ...], Squashed] = {}

    def note(self, name: str, x: Tensor | None, args: Any, y: Tensor, key: tuple[Any, ...], channels: bool) -> None:
        """Look at one operation's result ``y``."""
        if not y.is_floating_point() or y.ndim < 2:
            return
        if name in _SQUASHING:
            self._squash(name, y.detach(), key)
        elif name in _SURE or (name in _PERHAPS and x is not None and _is_rectification(x, y)):
            self._rectify(y.detach(), (*key, y.shape[1:]), channels)

    def _squash(self, name: str, y: Tensor, key: tuple[Any, ...]) -> None:
        noted = self.squashed.setdefault(key, Squashed())
        if name.startswith("tanh"):
            flat = y.abs() > threshold("saturated", "tanh")
        else:
            edge = threshold("saturated", "sigmoid")
            flat = (y < edge) | (y > 1 - edge)
        noted.flat += int(flat.sum())
        noted.count += y.numel()
        noted.last_address = y.data_ptr()

    def _rectify(self, y: Tensor, key: tuple[Any, ...], channels: bool) -> None:
        axis = 1 if channels or y.ndim >= 4 else y.ndim - 1
        others = [other for other in range(y.ndim) if other != axis]
        on = (y > 0).any(others[0]) if len(others) == 1 else (y > 0).movedim(axis, -1).flatten(0, -2).any(0)
        values = y.numel() // max(y.shape[axis], 1)
        if key in self.rectified and self.rectified[key].on.shape == on.shape:
            noted = self.rectified[key]
            noted.on |= on
            noted.values += values
        else:
            self.rectified[key] = Rectified(on, values, tuple(y.shape))


def _is_rectification(x: Tensor, y: Tensor) -> bool:
    if x.shape != y.shape:
        return False
    head, result = x.reshape(-1)[:256], y.reshape(-1)[:256]
    if not bool((head < 0).any()) and not bool((x < 0).any()):
        return False  # nothing to cut: it may be anything
    return torch.equal(result, head.clamp_min(0)) and torch.equal(y, x.clamp_min(0))
