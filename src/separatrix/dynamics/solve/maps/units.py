"""States so large or so small that squares of them are no numbers: they are solved for in units of their own.

Norms, inner products and tolerances of a solve square what they are given. In single precision the square of 1e-30 is
zero: a residual of that size, and any equilibrium, would count as found. The square of 1e30 is infinite, and an
equilibrium there would never be found.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true

from .counted import AffineMap, CountedMap

_ROOM = 0.4
"""Power of the largest number up to which squares, and products of some of them, are numbers."""


def unusual_units(
    z: Float[Tensor, "batch d"], f: Float[Tensor, "batch d"], size: Tensor, scale: Tensor
) -> Float[Tensor, "batch 1"] | None:
    """A power of two for each sample, one for those that need none; None if nobody does.

    Args:
        z: states.
        f: their images.
        size: norms of f - z, infinite where squares are.
        scale: norms of f.
    """
    largest_usual = torch.finfo(z.dtype).max ** _ROOM
    smallest_usual = 1 / largest_usual
    if bool(((size > smallest_usual) & (size < largest_usual) & (scale < largest_usual)).all()):
        return None
    largest = torch.maximum(z.abs(), f.abs()).amax(dim=-1, keepdim=True)
    unusual = (largest > largest_usual) | ((largest < smallest_usual) & (largest > 0))
    unusual = unusual & torch.isfinite(largest)
    if not any_true(unusual):
        return None
    return torch.where(unusual, torch.exp2(torch.log2(largest).floor()), 1.0)


def in_units(fixed_point_map: CountedMap, unit: Float[Tensor, "batch 1"], z: Float[Tensor, "batch d"]) -> CountedMap:
    """The same map on states like z over their units."""
    inside = fixed_point_map.fixed_point_map

    def linear(v: Tensor) -> Tensor:
        assert isinstance(inside, AffineMap)
        state = (v * unit).reshape(fixed_point_map.shape).to(fixed_point_map.dtype)
        return inside.linear(state).reshape(v.shape).to(v.dtype) / unit

    if isinstance(inside, AffineMap):
        scaled = AffineMap(linear, inside.offset.reshape(z.shape).to(z.dtype) / unit)
        return CountedMap(scaled, z.shape, z.dtype, rounding=fixed_point_map.rounding)
    return CountedMap(lambda w: fixed_point_map(w * unit) / unit, z.shape, z.dtype, rounding=fixed_point_map.rounding)
