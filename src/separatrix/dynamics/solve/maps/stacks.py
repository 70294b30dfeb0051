"""Products of each sample's vector with its own stack of vectors.

Written as a row vector times a matrix: on a CPU this batched product is three times as fast as multiplying and summing,
and ten times as fast as the same product with the vector as a column.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import transforms_active


def inner_products(stack: Float[Tensor, "batch k d"], vector: Float[Tensor, "batch d"]) -> Float[Tensor, "batch k"]:
    """The inner product of the vector with every member of the stack."""
    return torch.bmm(vector.unsqueeze(1), stack.mT).squeeze(1)


def combination(weights: Float[Tensor, "batch k"], stack: Float[Tensor, "batch k d"]) -> Float[Tensor, "batch d"]:
    """The weighted sum of the stack."""
    return torch.bmm(weights.unsqueeze(1), stack).squeeze(1)


def orthogonalised(
    stack: Float[Tensor, "batch k d"], vector: Float[Tensor, "batch d"]
) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch k"]]:
    """The vector without its part in the span of an orthonormal stack, and its inner products with the stack."""
    once = inner_products(stack, vector)
    vector = vector - combination(once, stack)
    again = inner_products(stack, vector)  # the second pass repairs orthogonality lost to rounding
    return vector - combination(again, stack), once + again


def rows_from(
    chosen: Float[Tensor, "batch d"], rows: Tensor, otherwise: Float[Tensor, "batch d"]
) -> Float[Tensor, "batch d"]:
    """``chosen`` in the rows of a boolean mask, ``otherwise`` elsewhere; rows are copied, so a NaN stays in its row."""
    if transforms_active():  # the number of rows must not depend on the data
        return torch.where(rows.unsqueeze(-1), chosen, otherwise)
    index = rows.nonzero().squeeze(1)
    return otherwise.index_copy(0, index, chosen.index_select(0, index))


@final
class Selection:
    """The rows of a mask, gathered to be worked on alone; inside ``torch.func.vmap``, where nobody can count them, all.

    Example:
        >>> rows = Selection(torch.tensor([False, True]))
        >>> rows.put(10 * rows.take(torch.tensor([1.0, 2.0])), torch.zeros(2))
        tensor([ 0., 20.])
    """

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask
        self._index = None if transforms_active() else mask.nonzero().squeeze(1)
        self._all = self._index is not None and self._index.shape[0] == mask.shape[0]

    @property
    def index(self) -> Tensor:
        """Which rows they are; not inside vmap."""
        assert self._index is not None
        return self._index

    @property
    def all(self) -> bool:
        """Whether they are all there are; never inside vmap."""
        return self._all

    def take(self, whole: Tensor) -> Tensor:
        """These rows of a tensor (batch, ...)."""
        return whole if self._index is None or self._all else whole.index_select(0, self._index)

    def put(self, part: Tensor, whole: Tensor) -> Tensor:
        """``whole`` with these rows replaced by those of ``part``; a new tensor."""
        if self._all:
            return part
        if self._index is None:
            return torch.where(self.mask.reshape(-1, *(1,) * (whole.ndim - 1)), part, whole)
        return whole.index_copy(0, self._index, part)

    def write(self, part: Tensor, whole: Tensor) -> Tensor:
        """``put`` into memory that nobody else holds: in place, where that may be, of these rows alone."""
        if self._index is None:
            return self.put(part, whole)
        return whole.copy_(part) if self._all else whole.index_copy_(0, self._index, part)
