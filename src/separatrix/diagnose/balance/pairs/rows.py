"""Rows: the part of a model's parameters that belongs to each hidden unit of a layer pair.

A layer pair is two matrices with one row per hidden unit, whatever the parameters behind them look like: the rows of
a linear layer with its bias, the columns of the next one, flattened kernels of a convolution, the slice of a fused
query-key-value matrix that belongs to one head. A ``RowView`` says where those rows live; it reads them from any
mapping of names to tensors (parameters, gradients, copies) and writes them back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor


@final
@dataclasses.dataclass(frozen=True)
class Part:
    """A stretch of one parameter: ``count`` hidden units along ``axis`` from ``start``, ``block`` entries each."""

    parameter: str
    axis: int
    start: int
    count: int
    block: int = 1

    def select(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The stretch as a view with the axis of hidden units in front."""
        stretch = tensors[self.parameter].narrow(self.axis, self.start, self.count * self.block)
        return stretch.movedim(self.axis, 0)

    def read(self, tensors: Mapping[str, Tensor]) -> Float[Tensor, "h m"]:
        """One row per hidden unit."""
        return self.select(tensors).reshape(self.count, -1)


@final
@dataclasses.dataclass(frozen=True)
class RowView:
    """Rows put together from several parts, side by side (a weight and its bias, several heads of one group)."""

    parts: tuple[Part, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters behind the rows, each once."""
        return tuple(dict.fromkeys(part.parameter for part in self.parts))

    @property
    def n_rows(self) -> int:
        """Number of hidden units."""
        return self.parts[0].count

    def read(self, tensors: Mapping[str, Tensor]) -> Float[Tensor, "h m"]:
        """The rows as one matrix."""
        return torch.cat([part.read(tensors) for part in self.parts], dim=1)

    def write_(self, tensors: Mapping[str, Tensor], rows: Float[Tensor, "h m"]) -> None:
        """Put rows back where they came from, in place."""
        start = 0
        for part in self.parts:
            target = part.select(tensors)
            width = target.numel() // part.count
            target.copy_(rows[:, start : start + width].reshape(target.shape))
            start += width


def whole(parameter: str, axis: int, count: int, block: int = 1) -> Part:
    """A part that covers the whole axis of a parameter."""
    return Part(parameter, axis, 0, count, block)
