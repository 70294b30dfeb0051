"""Keep a weight inside a ball, so that a cell contracts: parametrisations on top of torch's own mechanism.

Each ``bound_*`` attaches to any layer; the optimiser moves a free matrix, and the layer sees it scaled into the ball.
``DEQ`` computes the scaled weight once a call. For weight normalisation use
``torch.nn.utils.parametrizations.weight_norm``, which works with ``DEQ`` as it is.
"""

from __future__ import annotations

import abc
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import ShapeError
from separatrix.core.random import default_generator

Layer = TypeVar("Layer", bound=nn.Module)


class AbstractBall(nn.Module, abc.ABC):
    """All matrices whose norm is at most ``bound``; implementers write ``size``."""

    def __init__(self, bound: float) -> None:
        super().__init__()
        require_positive(bound, "bound")
        self.bound = bound

    @abc.abstractmethod
    def size(self, matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, " *sizes"]:
        """The norm of the matrix, or one per row as a column."""

    def forward(self, free: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
        """The matrix itself if it lies in the ball, else the matrix scaled to the boundary."""
        return free * (self.bound / self.size(free).clamp_min(self.bound))

    def right_inverse(self, matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
        """Assigning a member of the ball gives that member; anything else is scaled when used."""
        return matrix

    def in_manifold(self, matrix: Float[Tensor, "rows columns"], tol: float = 1e-6) -> bool:
        """Whether the matrix lies in the ball."""
        return bool((self.size(matrix) <= self.bound * (1 + tol)).all())


class FrobeniusBall(AbstractBall):
    """The root of the sum of squares is at most ``bound``."""

    def size(self, matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, " *sizes"]:
        """The Frobenius norm."""
        return torch.linalg.vector_norm(matrix)


class RowSumBall(AbstractBall):
    """Every row's sum of absolute values is at most ``bound``, so |W|_inf is."""

    def size(self, matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, " *sizes"]:
        """The 1-norm of each row."""
        return torch.linalg.vector_norm(matrix, ord=1, dim=1, keepdim=True)


class SpectralBall(AbstractBall):
    """The largest singular value is at most ``bound``, as estimated by power iteration.

    The singular vectors are kept from call to call and improved by one iteration a call in training, so the estimate
    (from below) follows slowly moving weights closely.
    """

    left: Tensor
    right: Tensor

    def __init__(self, weight: Float[Tensor, "rows columns"], bound: float, generator: torch.Generator) -> None:
        super().__init__(bound)
        start = torch.randn(weight.shape[1], generator=generator, dtype=weight.dtype, device=generator.device)
        self.register_buffer("right", nn.functional.normalize(start.to(weight.device), dim=0))
        self.register_buffer("left", weight.new_zeros(weight.shape[0]))
        self.improve(weight, iterations=30)

    @torch.no_grad()
    def improve(self, matrix: Float[Tensor, "rows columns"], iterations: int) -> None:
        """Bring the kept singular vectors closer to those of the matrix."""
        require_integer(iterations, "iterations", at_least=1)
        for _ in range(iterations):
            # new tensors, not in place: the old ones may be needed by a backward pass still to come
            self.left = nn.functional.normalize(matrix @ self.right, dim=0)
            self.right = nn.functional.normalize(matrix.mT @ self.left, dim=0)

    def size(self, matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, " *sizes"]:
        """The Rayleigh quotient of the kept singular vectors."""
        return self.left @ matrix @ self.right

    def forward(self, free: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
        """As for every ball, after one more power iteration when training."""
        if self.training:
            self.improve(free, iterations=1)
        return super().forward(free)


def bound_frobenius_norm(layer: Layer, bound: float, *, name: str = "weight") -> Layer:
    """Keep the Frobenius norm of a layer's weight at or below ``bound``.

    Example:
        >>> layer = bound_frobenius_norm(torch.nn.Linear(3, 3), 0.5)
        >>> bool(layer.weight.norm() <= 0.5 + 1e-6)
        True
    """
    _matrix(layer, name)
    return _registered(layer, name, FrobeniusBall(bound))


def bound_row_sums(layer: Layer, bound: float, *, name: str = "weight") -> Layer:
    """Keep |W|_inf at or below ``bound``; below one, z -> phi(W z) + x with |phi'| <= 1 has exactly one equilibrium."""
    _matrix(layer, name)
    return _registered(layer, name, RowSumBall(bound))


def bound_spectral_norm(
    layer: Layer, bound: float, *, generator: torch.Generator | None = None, name: str = "weight"
) -> Layer:
    """Keep the largest singular value of a layer's weight at or below ``bound``.

    Args:
        layer: any module with a matrix of that name.
        bound: the largest singular value allowed.
        generator: for the start of the power iteration.
        name: of the parameter.
    """
    generator = default_generator(generator)
    return _registered(layer, name, SpectralBall(_matrix(layer, name).detach(), bound, generator))


def _matrix(layer: nn.Module, name: str) -> Tensor:
    weight = getattr(layer, name, None)
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        found = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise ShapeError(f"the layer must have a matrix {name!r} (rows, columns); got {found}.")
    return weight


def _registered(layer: Layer, name: str, ball: AbstractBall) -> Layer:
    parametrize.register_parametrization(layer, name, ball)
    return layer
