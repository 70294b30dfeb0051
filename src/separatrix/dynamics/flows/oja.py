"""The multiagent Oja flow: every token is pulled by V times the mean of all tokens.

    dx_i/dt = (I - x_i x_i') V m,   m = sum_j (s_j / sum s) x_j

The limit of self-attention as the inverse temperature tends to zero. Source: altafini2025, section 4.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import ShapeError, as_tensor, require_square
from separatrix.core.names import suggest_options

from .attention_matrices import check_sizes
from .base import AbstractSphereFlow, select_leading


@final
@suggest_options
class OjaFlow(AbstractSphereFlow):
    """The multiagent Oja flow of a value matrix (..., d, d), with optional cluster sizes (..., n).

    Cost of a velocity: n d + d^2 per element.
    """

    def __init__(self, value: object, sizes: object | None = None) -> None:
        matrix = as_tensor(value, "value")
        require_square(matrix, "value")
        if matrix.shape[-1] < 2:
            raise ShapeError(f"value must act on tokens of dimension d >= 2; got shape {tuple(matrix.shape)}.")
        self.value: Tensor = matrix
        self._sizes = None if sizes is None else check_sizes(as_tensor(sizes, "sizes", dtype=matrix.dtype))

    @property
    def value_sum(self) -> Float[Tensor, "*instances d d"]:
        """The value matrix."""
        return self.value

    @property
    def sizes(self) -> Float[Tensor, "*axes n"] | None:
        """How many tokens each row stands for; None if every row is one token."""
        return self._sizes

    @property
    def reducible(self) -> bool:
        """Always: tokens at one place move alike."""
        return True

    def with_sizes(self, sizes: Float[Tensor, "*batch m"] | None) -> OjaFlow:
        """The restriction to m clusters of the given sizes."""
        return OjaFlow(self.value, sizes)

    def to(self, dtype: torch.dtype) -> OjaFlow:
        """The same flow computing in another precision."""
        return OjaFlow(self.value.to(dtype), None if self._sizes is None else self._sizes.to(dtype))

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> OjaFlow:
        """The flow of some elements of a flattened batch; a shared value matrix stays shared."""
        value = self.value if self.value.ndim == 2 else select_leading(self.value, batch_shape, index, 2)
        if self._sizes is None or self._sizes.ndim == 1:
            return OjaFlow(value, self._sizes)
        return OjaFlow(value, select_leading(self._sizes, batch_shape, index, 1))

    def _check_shape(self, x: Tensor) -> None:
        if x.ndim < 2 or x.shape[-1] != self.value.shape[-1]:
            raise ShapeError(f"tokens must have shape (..., n, {self.dim}); got {tuple(x.shape)}.")
        if self._sizes is not None and x.shape[-2] != self._sizes.shape[-1]:
            raise ShapeError(f"sizes are for {self._sizes.shape[-1]} tokens; got tokens of shape {tuple(x.shape)}.")

    def mean(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch2 d"]:
        """Mean of the tokens, weighted by the sizes."""
        self._check_shape(x)
        if self._sizes is None:
            return x.mean(dim=-2)
        fractions = self._sizes / self._sizes.sum(dim=-1, keepdim=True)
        return (fractions.unsqueeze(-1) * x).sum(dim=-2)

    def pull(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch2 1 d"]:
        """V m, the same for every token."""
        return self._along(self.mean(x))

    def pull_and_jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"]
    ) -> tuple[Float[Tensor, "*batch3 1 d"], Float[Tensor, "*batch4 1 d"]]:
        """V m and its derivative in direction u."""
        return self.pull(x), self._along(self.mean(u))

    def _along(self, mean: Tensor) -> Tensor:
        return (self.value @ mean.unsqueeze(-1)).mT
