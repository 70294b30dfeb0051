"""Unitary matrices by a fixed recipe of 7n numbers, and by the exponential map of all of u(n)."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from .algebra import skew_hermitian, skew_hermitian_entries
from .manifold import AbstractOrthogonalMap
from .starts import haar_unitary, rotation_start, unitary_logarithm


@final
@suggest_options
class UnitaryRecipe(AbstractOrthogonalMap):
    r"""The first unitary RNN: :math:`W = D_3 R_2 F^{-1} D_2 \Pi R_1 F D_1`, 7n real numbers.

    D are diagonals of phases, R complex reflections, F the unitary Fourier transform, Pi a fixed permutation. For n > 7
    it cannot reach all of the n^2-dimensional unitary group.

    Args:
        n: size.
        generator: draws the permutation; a fixed seed by default.

    Source: kerg2022, appendix D.3.
    """

    name = "urnn"
    free_names = ("phases", "reflections")
    is_complex = True
    permutation: Tensor

    def __init__(self, n: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__(n)
        generator = torch.Generator().manual_seed(0) if generator is None else generator
        self.register_buffer("permutation", torch.randperm(n, generator=generator))

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix, by applying the recipe to the identity.

        Raises:
            InvalidInput: a reflection along the zero vector, or a permutation that somebody else wrote over.
        """
        self._require_permutation()
        phases, vectors = free
        first, second, third = torch.polar(torch.ones_like(phases), phases).unbind(0)
        reflections = torch.complex(vectors[:, 0].contiguous(), vectors[:, 1].contiguous())
        squares = vectors.detach().square().sum((1, 2))
        if bool((squares == 0).any()):
            raise InvalidInput("a reflection vector is zero; it has no direction to reflect along.")
        matrix = torch.diag(first)
        matrix = _reflected(torch.fft.fft(matrix, dim=0, norm="ortho"), reflections[0])
        matrix = second.unsqueeze(1) * matrix[self.permutation]
        return third.unsqueeze(1) * _reflected(torch.fft.ifft(matrix, dim=0, norm="ortho"), reflections[1])

    def _require_permutation(self) -> None:
        """Averages of buffers cut whole numbers off."""
        if not torch.equal(self.permutation.sort().values, torch.arange(self.n, device=self.permutation.device)):
            raise InvalidInput(
                f"the buffer 'permutation' of the urnn map must hold each of 0 to {self.n - 1} once; an average of "
                "buffers destroys it: leave buffers out."
            )

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Not known: the family is smaller than the group, and is assigned only what it drew itself."""
        raise InvalidInput("the urnn map has no inverse; it starts from its own random phases and reflections.")

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Uniform phases and Gaussian reflections."""
        if start is not None:
            raise InvalidInput(f"unknown start {start!r} of the urnn map; it has its own random one alone.")
        phases = (2 * torch.rand(3, self.n, dtype=torch.float64, generator=generator) - 1) * math.pi
        return phases, torch.randn(2, 2, self.n, dtype=torch.float64, generator=generator)


@final
@suggest_options
class LieU(AbstractOrthogonalMap):
    """All unitary matrices as exponentials of skew-Hermitian ones; n^2 real numbers that stay where they are.

    Args:
        n: size.

    Source: kerg2022, appendix D.3.

    Cost: autograd goes through the exponential, about a hundred matrix products a step; ``FullCapacity`` is cheaper.
    """

    name = "lie_u"
    free_names = ("coefficients",)
    is_complex = True

    def __init__(self, n: int) -> None:
        super().__init__(n)

    def forward(self, *free: Tensor) -> Tensor:
        """The exponential."""
        return torch.linalg.matrix_exp(skew_hermitian(free[0], self.n))

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """The logarithm with angles in (-pi, pi]."""
        return (skew_hermitian_entries(unitary_logarithm(matrix)),)

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The logarithm of a Haar unitary matrix, or of a named rotation."""
        if start is None or start == "haar":
            return self.invert(haar_unitary(self.n, generator=generator))
        return self.invert(rotation_start(start, self.n, generator=generator))


def _reflected(matrix: Tensor, vector: Tensor) -> Tensor:
    """``(I - 2 v v^H / |v|^2) M``."""
    scaled = vector / torch.linalg.vector_norm(vector)
    return matrix - 2 * torch.outer(scaled, scaled.conj() @ matrix)
