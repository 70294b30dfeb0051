"""Pack the state of a cell (a tensor, a tuple or a dictionary of tensors) into one matrix (batch, d) and back."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeAlias, final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from separatrix.core.errors import InvalidInput

State: TypeAlias = Any
"""A tensor, or a tuple or dictionary of tensors, all with the same first axis."""


@final
@dataclasses.dataclass(frozen=True)
class StateLayout:
    """How a state is laid out: its structure, the shape and dtype of each tensor, and the dtype solvers work in."""

    structure: Any
    shapes: tuple[torch.Size, ...]
    dtypes: tuple[torch.dtype, ...]
    dtype: torch.dtype
    bare: bool
    """The state is one tensor, not a structure of tensors."""

    @classmethod
    def of(cls, state: State) -> StateLayout:
        """The layout of a state; refuses states whose tensors do not share the batch axis."""
        leaves, structure = pytree.tree_flatten(state)
        if not leaves or not all(isinstance(leaf, Tensor) and leaf.ndim >= 1 for leaf in leaves):
            raise InvalidInput("a state must be a tensor (batch, ...) or a tuple or dictionary of such tensors.")
        if not all(leaf.is_floating_point() for leaf in leaves):
            raise InvalidInput(f"the tensors of a state must be floating; got {[leaf.dtype for leaf in leaves]}.")
        if len({leaf.shape[0] for leaf in leaves}) != 1:
            shapes = [tuple(leaf.shape) for leaf in leaves]
            raise InvalidInput(f"the tensors of a state must share their first axis, the batch; got shapes {shapes}.")
        dtypes = tuple(leaf.dtype for leaf in leaves)
        # solvers need single precision at least: least squares in half precision would not converge
        dtype = functools.reduce(torch.promote_types, dtypes, torch.float32)
        return cls(structure, tuple(leaf.shape for leaf in leaves), dtypes, dtype, isinstance(state, Tensor))

    def pack(self, state: State) -> Tensor:
        """The state as (batch, d)."""
        if isinstance(state, Tensor) and self.bare and state.shape == self.shapes[0]:
            return _flat(state, self.dtype)
        leaves, structure = pytree.tree_flatten(state)
        shapes = tuple(leaf.shape for leaf in leaves)
        if structure != self.structure or shapes != self.shapes:
            raise InvalidInput(
                f"the cell must return a state like the one it gets: shapes {[tuple(s) for s in self.shapes]}; "
                f"it returned {[tuple(s) for s in shapes]}."
            )
        return torch.cat([_flat(leaf, self.dtype) for leaf in leaves], dim=1)

    def unpack(self, packed: Tensor) -> State:
        """The inverse of ``pack``."""
        if self.bare:
            return packed.reshape(self.shapes[0]).to(self.dtypes[0])
        sizes = [shape[1:].numel() for shape in self.shapes]
        parts = zip(packed.split(sizes, dim=1), self.shapes, self.dtypes, strict=True)
        leaves = [part.reshape(shape).to(dtype) for part, shape, dtype in parts]
        return pytree.tree_unflatten(leaves, self.structure)


def _flat(leaf: Tensor, dtype: torch.dtype) -> Tensor:
    leaf = leaf.to(dtype)
    return leaf.unsqueeze(1) if leaf.ndim == 1 else leaf.flatten(1)
