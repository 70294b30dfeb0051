"""Pack the state of a cell (a tensor, a tuple or a dictionary of tensors) into one matrix (batch, d) and back."""

from __future__ import annotations

import dataclasses
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
    """How a state is laid out: its structure and the shape of each tensor."""

    structure: Any
    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, state: State) -> StateLayout:
        """The layout of a state; refuses states whose tensors do not share the batch axis."""
        leaves, structure = pytree.tree_flatten(state)
        if not leaves or not all(isinstance(leaf, Tensor) and leaf.ndim >= 1 for leaf in leaves):
            raise InvalidInput("a state must be a tensor (batch, ...) or a tuple or dictionary of such tensors.")
        if len({leaf.shape[0] for leaf in leaves}) != 1:
            shapes = [tuple(leaf.shape) for leaf in leaves]
            raise InvalidInput(f"the tensors of a state must share their first axis, the batch; got shapes {shapes}.")
        return cls(structure, tuple(leaf.shape for leaf in leaves))

    def pack(self, state: State) -> Tensor:
        """The state as (batch, d)."""
        leaves, structure = pytree.tree_flatten(state)
        shapes = tuple(leaf.shape for leaf in leaves)
        if structure != self.structure or shapes != self.shapes:
            raise InvalidInput(
                f"the cell must return a state like the one it gets: shapes {[tuple(s) for s in self.shapes]}; "
                f"it returned {[tuple(s) for s in shapes]}."
            )
        if len(leaves) == 1:
            return leaves[0].reshape(leaves[0].shape[0], -1)
        return torch.cat([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], dim=1)

    def unpack(self, packed: Tensor) -> State:
        """The inverse of ``pack``."""
        if len(self.shapes) == 1:
            return pytree.tree_unflatten([packed.reshape(self.shapes[0])], self.structure)
        sizes = [shape[1:].numel() for shape in self.shapes]
        leaves = [part.reshape(shape) for part, shape in zip(packed.split(sizes, dim=1), self.shapes, strict=True)]
        return pytree.tree_unflatten(leaves, self.structure)
