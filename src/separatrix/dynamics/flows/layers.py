"""A chain of layers as one state of a flow, and what training such a chain returns."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TypeAlias, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, Result

Chain: TypeAlias = tuple[Tensor, ...]


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LayerTrajectory(Result):
    """Layers along training. Elements that failed hold NaN from the failure on."""

    times: Float[Tensor, " times"]
    layers: tuple[Tensor, ...]
    """Each (times, *batch, rows, columns), first layer first."""
    loss: Float[Tensor, " times *batch"]
    outcome: Int64[Tensor, "*batch"]
    """A code of ``core.Outcome`` per network; completed means: followed to the last time."""
    evaluations: Int64[Tensor, "*batch"]
    """Gradients computed."""

    @property
    def product(self) -> Tensor:
        """The network function of a linear chain, (times, *batch, n_out, n_in)."""
        return chain_product(self.layers)

    @property
    def ok(self) -> bool:
        """Whether every element was followed to the end."""
        return bool((self.outcome == Outcome.COMPLETED).all())


def chain_product(layers: Sequence[Tensor]) -> Float[Tensor, "*batch o i"]:
    """The product ``W_L ... W_1`` of a chain of layers, first layer first."""
    if not layers:
        raise InvalidInput("layers must hold at least one matrix.")
    product = layers[0]
    for layer in layers[1:]:
        product = layer @ product
    return product


def pack(layers: Sequence[Tensor]) -> Float[Tensor, "*batch 1 size"]:
    """All entries of a chain as one token, first layer first."""
    return torch.cat([layer.flatten(-2) for layer in layers], dim=-1).unsqueeze(-2)


def unpack(x: Float[Tensor, "*batch 1 size"], widths: Sequence[int]) -> Chain:
    """The chain whose layers map ``widths[0]`` to ``widths[1]`` and so on."""
    shapes = [(after, before) for before, after in itertools.pairwise(widths)]
    parts = x.squeeze(-2).split([rows * columns for rows, columns in shapes], dim=-1)
    return tuple(part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True))
