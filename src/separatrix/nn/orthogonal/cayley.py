r"""Maps by the Cayley transform, :math:`W = (I + A)^{-1}(I - A) D`: one solve, but no eigenvalue -1 without D."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.arithmetic.linear_systems import solve
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from .algebra import skew, skew_entries, skew_hermitian, skew_hermitian_entries
from .manifold import AbstractOrthogonalMap, widened
from .starts import haar_unitary, rotation_start, skew_start


@final
@suggest_options
class Cayley(AbstractOrthogonalMap):
    r"""Orthogonal matrices :math:`(I + A)^{-1}(I - A) D`, A skew, D a fixed diagonal of signs.

    The Cayley transform has no eigenvalue -1; with D every orthogonal matrix is reached for some choice of signs.

    Args:
        n: size; n(n-1)/2 parameters.
        n_negative: number of -1 in D, at the end of the diagonal; half of them by default.

    Source: kerg2022, appendix D.3 ("only a subset" by erratum kerg2022-cayley-subset).

    Cost: one solve forward, two backward.
    """

    name = "cayley"
    free_names = ("tangent",)
    signs: Tensor

    def __init__(self, n: int, n_negative: int | None = None) -> None:
        super().__init__(n)
        count = n // 2 if n_negative is None else n_negative
        if not isinstance(count, int) or not 0 <= count <= n:
            raise InvalidInput(f"n_negative must be an integer between 0 and {n}; got {n_negative!r}.")
        signs = torch.ones(n)
        signs[n - count :] = -1
        self.register_buffer("signs", signs)

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix."""
        return cayley_transform(skew(free[0], self.n)) * self.signs.to(free[0].dtype)

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """The inverse transform; a matrix for which W D has the eigenvalue -1 is out of reach with these signs."""
        turned = matrix.to(torch.float64) * self.signs.to(torch.float64)
        return (skew_entries(inverse_cayley(turned)),)

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """``"cayley"`` is this map's own start (angles t); others are reached through the inverse transform."""
        exponent = skew_start(start or "cayley", self.n, generator=generator)
        if start in (None, "cayley", "identity"):
            assert exponent is not None
            return (skew_entries(exponent),)
        rotation = (
            torch.linalg.matrix_exp(exponent)
            if exponent is not None
            else rotation_start("haar", self.n, generator=generator)
        )
        return (skew_entries(inverse_cayley(rotation)),)


@final
@suggest_options
class ComplexCayley(AbstractOrthogonalMap):
    r"""Unitary matrices :math:`(I + A)^{-1}(I - A) D`, A skew-Hermitian, D a diagonal of phases that are learned.

    Args:
        n: size; n^2 + n real parameters.

    Source: kerg2022, appendix D.3.
    """

    name = "complex_cayley"
    free_names = ("tangent", "phases")
    is_complex = True

    def __init__(self, n: int) -> None:
        super().__init__(n)

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix."""
        tangent, phases = free
        return cayley_transform(skew_hermitian(tangent, self.n)) * torch.polar(torch.ones_like(phases), phases)

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """With phases in the widest gap of the spectrum, so that the inverse transform is as well off as can be."""
        wide = matrix.to(torch.complex128)
        angles = eigvals(wide).angle().sort().values
        gaps = torch.cat([angles[1:], angles[:1] + 2 * math.pi]) - angles
        widest = int(gaps.argmax())
        phase = float(angles[widest] + gaps[widest] / 2) - math.pi  # so that the gap comes to lie at -1
        phases = torch.full((self.n,), phase, dtype=torch.float64)
        turned = wide * torch.polar(torch.ones_like(phases), -phases)
        return skew_hermitian_entries(inverse_cayley(turned)), phases

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Blocks of ``"cayley"`` and uniform phases by default; others through the inverse transform."""
        if start is None:
            exponent = skew_start("cayley", self.n, generator=generator)
            assert exponent is not None
            phases = 2 * math.pi * torch.rand(self.n, dtype=torch.float64, generator=generator)
            return skew_hermitian_entries(exponent.to(torch.complex128)), phases
        if start == "haar":
            return self.invert(haar_unitary(self.n, generator=generator))
        return self.invert(rotation_start(start, self.n, generator=generator))


def cayley_transform(matrix: Tensor) -> Tensor:
    """``(I + A)^-1 (I - A)``; in float32 where A has less."""
    wide = widened(matrix)
    identity = torch.eye(wide.shape[-1], dtype=wide.dtype, device=wide.device)
    return solve(identity + wide, identity - wide).to(matrix.dtype)


def inverse_cayley(matrix: Tensor) -> Tensor:
    """The skew matrix whose Cayley transform this is.

    Raises:
        InvalidInput: the matrix has the eigenvalue -1 (to rounding), where the transform has no inverse.
    """
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    if float(torch.linalg.svdvals(identity + matrix).min()) < 1e-6:
        raise InvalidInput(
            "the Cayley map does not reach this matrix with these signs: it leaves an eigenvalue -1. Choose another "
            "n_negative, or the map 'exp'."
        )
    found = solve(identity + matrix, identity - matrix)
    return (found - found.mH) / 2
