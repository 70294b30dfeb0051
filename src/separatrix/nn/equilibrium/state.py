"""Pack the state of a cell (a tensor, a tuple or a dictionary of tensors) into one matrix (batch, d) and back."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any, TypeAlias, final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from separatrix.core.arrays import require_dense
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
        for leaf in leaves:
            require_dense(leaf, "a state")
        if not leaves or not all(isinstance(leaf, Tensor) and leaf.ndim >= 1 for leaf in leaves):
            raise InvalidInput("a state must be a tensor (batch, ...) or a tuple or dictionary of such tensors.")
        if not all(leaf.is_floating_point() for leaf in leaves):
            raise InvalidInput(f"the tensors of a state must be floating; got {[leaf.dtype for leaf in leaves]}.")
        if len({leaf.shape[0] for leaf in leaves}) != 1:
            shapes = [tuple(leaf.shape) for leaf in leaves]
            raise InvalidInput(f"the tensors of a state must share their first axis, the batch; got shapes {shapes}.")
        if any(leaf.shape[1:].numel() == 0 for leaf in leaves):
            shapes = [tuple(leaf.shape) for leaf in leaves]
            raise InvalidInput(f"the tensors of a state must have at least one feature; got shapes {shapes}.")
        dtypes = tuple(leaf.dtype for leaf in leaves)
        # solvers need single precision at least: least squares in half precision would not converge
        dtype = functools.reduce(torch.promote_types, dtypes, torch.float32)
        return cls(structure, tuple(leaf.shape for leaf in leaves), dtypes, dtype, isinstance(state, Tensor))

    @property
    def rounding(self) -> float:
        """The relative rounding error of its coarsest tensor."""
        return max(float(torch.finfo(dtype).eps) for dtype in self.dtypes)

    def pack(self, state: State) -> Tensor:
        """The state as (batch, d)."""
        if isinstance(state, Tensor) and self.bare and state.shape == self.shapes[0]:
            return _flat(state, self.dtype)
        state = _in_the_order_of(pytree.tree_unflatten(list(self.shapes), self.structure), state)
        leaves, structure = pytree.tree_flatten(state)
        shapes = tuple(leaf.shape if isinstance(leaf, Tensor) else torch.Size() for leaf in leaves)
        if structure != self.structure or shapes != self.shapes:
            raise InvalidInput(
                f"the cell must return a state like the one it gets: {_described(self.structure, self.shapes)}; "
                f"it returned {_described(structure, shapes)}."
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


def _in_the_order_of(model: Any, state: Any) -> Any:
    """The same state with its dictionaries in the order of the model's: a dictionary is known by its keys."""
    if isinstance(model, dict) and isinstance(state, dict) and model.keys() == state.keys():
        ordered = copy.copy(model)  # of the kind that was given: OrderedDict and others are dictionaries too
        ordered.update({key: _in_the_order_of(model[key], state[key]) for key in model})
        return ordered
    if type(model) in (list, tuple) and type(state) is type(model) and len(model) == len(state):
        return type(model)(_in_the_order_of(a, b) for a, b in zip(model, state, strict=True))
    return state


def _described(structure: Any, shapes: tuple[torch.Size, ...]) -> str:
    """Shapes in their structure, with the names of a dictionary."""
    nested = pytree.tree_unflatten([tuple(shape) for shape in shapes], structure)
    return f"shapes {nested if isinstance(nested, dict) else [tuple(shape) for shape in shapes]}"


def _flat(leaf: Tensor, dtype: torch.dtype) -> Tensor:
    leaf = leaf.to(dtype)
    return leaf.unsqueeze(1) if leaf.ndim == 1 else leaf.flatten(1)
