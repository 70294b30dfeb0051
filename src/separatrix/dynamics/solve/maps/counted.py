"""The map of a solve: shape and dtype kept, evaluations counted, the caller's autocast respected."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TypeAlias, final

import torch
from torch import Tensor

from separatrix.core.described import Described
from separatrix.core.errors import ShapeError
from separatrix.core.names import suggest_options

from .products import jacobian_product, transposed_product

FixedPointMap: TypeAlias = Callable[[Tensor], Tensor]


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AffineMap:
    """v -> linear(v) + offset: a map that is its own derivative up to a constant, as in adjoint equations."""

    linear: FixedPointMap
    offset: Tensor

    def __call__(self, v: Tensor) -> Tensor:
        """The image of v."""
        return self.linear(v) + self.offset


@final
@suggest_options
class CountedMap(Described):
    """A map on states (batch, d).

    The arithmetic of a solver must not run in half precision, so the loop switches autocast off and computes in single
    precision at least; the map gets states of the given dtype, under whatever autocast was on when this object was
    made.

    Args:
        fixed_point_map: the map on states of the given shape.
        shape: of the states as the map wants them.
        dtype: of the states as the map wants them.
        rounding: relative rounding error of the map, where it is coarser than what its dtypes show.
    """

    def __init__(
        self, fixed_point_map: FixedPointMap, shape: torch.Size, dtype: torch.dtype, *, rounding: float = 0.0
    ) -> None:
        self.fixed_point_map = fixed_point_map
        self.shape = shape
        self.dtype = dtype
        self.evaluations = 0
        self._lower = {
            device: torch.get_autocast_dtype(device) for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)
        }
        self.rounding = max(rounding, *(float(torch.finfo(kind).eps) for kind in (dtype, *self._lower.values())))
        """Relative rounding error of what the map returns, the coarsest seen so far."""

    def __call__(self, z: Tensor) -> Tensor:
        """The image of z, in the dtype of z."""
        self.evaluations += 1
        state = z if z.shape == self.shape and z.dtype == self.dtype else z.view(self.shape).to(self.dtype)
        if self._lower:
            with self._autocast(z.device.type):
                image = self.fixed_point_map(state)
        else:
            image = self.fixed_point_map(state)
        if image.shape != self.shape:
            raise ShapeError(
                f"the map must return the shape it is given, {tuple(self.shape)}; it returned {tuple(image.shape)}."
            )
        if image.dtype == z.dtype:
            return image if state is z else image.reshape(z.shape)
        if image.is_floating_point():
            self.rounding = max(self.rounding, float(torch.finfo(image.dtype).eps))
        return image.reshape(z.shape).to(z.dtype)

    def derivative(self, z: Tensor, direction: Tensor) -> Tensor:
        """The Jacobian at z times a direction."""
        if isinstance(self.fixed_point_map, AffineMap):
            self.evaluations += 1
            return self.fixed_point_map.linear(direction.view(self.shape)).reshape(direction.shape)
        return jacobian_product(self, z, direction)

    def transposed_derivative(self, z: Tensor, vector: Tensor) -> Tensor:
        """The transpose of the Jacobian at z times a vector."""
        return transposed_product(self, z, vector)

    def _autocast(self, device: str) -> contextlib.AbstractContextManager[object]:
        if device not in self._lower:
            return contextlib.nullcontext()
        return torch.autocast(device, dtype=self._lower[device])
