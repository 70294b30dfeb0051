"""States of any form as rows of real numbers and back: a tensor, a tuple of tensors, complex or not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput

State: TypeAlias = Any
"""A tensor, or a tuple of tensors, as a module hands it out."""


@final
@dataclasses.dataclass(frozen=True)
class Packing:
    """How the state of one sample is laid out: shapes, dtypes and where the batch axis stands in each tensor."""

    shapes: tuple[tuple[int, ...], ...]
    """Of each tensor, without the batch axis."""
    dtypes: tuple[torch.dtype, ...]
    batch_axis: int
    is_tuple: bool

    @classmethod
    def of(cls, state: State, batch_axis: int, what: str) -> Packing:
        """The layout of a state that came out of a module."""
        parts = _parts(state, what)
        if any(part.ndim <= batch_axis for part in parts):
            raise InvalidInput(f"{what} must have a batch axis; got shapes {[tuple(part.shape) for part in parts]}.")
        shapes = tuple(tuple(part.shape[:batch_axis] + part.shape[batch_axis + 1 :]) for part in parts)
        return cls(shapes, tuple(part.dtype for part in parts), batch_axis, not isinstance(state, Tensor))

    @property
    def size(self) -> int:
        """Real numbers in a state."""
        return sum(self._count(shape, dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True))

    @property
    def rounding(self) -> float:
        """Relative rounding error of its coarsest tensor."""
        return max(torch.finfo(dtype).eps for dtype in self.dtypes)

    def _count(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        return torch.Size(shape).numel() * (2 if dtype.is_complex else 1)

    def pack(self, state: State) -> Float[Tensor, "b n"]:
        """Rows of float64 numbers; complex ones as real and imaginary parts."""
        rows = []
        for part in _parts(state, "state"):
            row = part.movedim(self.batch_axis, 0).flatten(1)
            row = torch.view_as_real(row.resolve_conj()).flatten(1) if row.is_complex() else row
            rows.append(row.to(torch.float64))
        return torch.cat(rows, dim=-1)

    def unpack(self, rows: Float[Tensor, "b n"]) -> State:
        """The state in the form the module wants."""
        counts = [self._count(shape, dtype) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]
        parts = []
        for row, shape, dtype in zip(rows.split(counts, dim=-1), self.shapes, self.dtypes, strict=True):
            if dtype.is_complex:
                row = torch.view_as_complex(row.unflatten(-1, (-1, 2)).contiguous())
            parts.append(
                row.unflatten(-1, shape).movedim(0, self.batch_axis).to(dtype) if shape else row[:, 0].to(dtype)
            )
        return tuple(parts) if self.is_tuple else parts[0]

    def converted(self, cast: Callable[[torch.dtype], torch.dtype]) -> Packing:
        """The same layout in another precision."""
        return dataclasses.replace(self, dtypes=tuple(cast(dtype) for dtype in self.dtypes))


def _parts(state: State, what: str) -> tuple[Tensor, ...]:
    parts = (state,) if isinstance(state, Tensor) else tuple(state) if isinstance(state, tuple | list) else ()
    fine = all(isinstance(part, Tensor) and (part.is_floating_point() or part.is_complex()) for part in parts)
    if not parts or not fine:
        raise InvalidInput(f"{what} must be a tensor or a tuple of tensors of numbers; got {type(state).__name__}.")
    return parts
