r"""Matrices that may leave the orthogonal ones by a margin m: :math:`W = U\,\mathrm{diag}(s)\,V^\top`, |s - 1| < m."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from .manifold import AbstractOrthogonalMap, member_tolerance, widened
from .rebased import Exp


@final
@suggest_options
class SingularMargin(AbstractOrthogonalMap):
    r"""Singular values :math:`1 + 2m(\sigma(p) - 1/2)`, orthogonal factors by the exponential map.

    Args:
        n: size.
        margin: m, in [0, 1); with 0 the matrix is orthogonal.
        rebase: of both factors, as in ``Exp``.

    Source: kerg2022, appendix D.3.
    """

    name = "svd"
    free_names = ("left", "right", "spectrum")

    def __init__(self, n: int, margin: float = 0.1, rebase: int | None = 1) -> None:
        super().__init__(n)
        if not 0 <= margin < 1:
            raise InvalidInput(f"margin must lie in [0, 1); got {margin!r}.")
        self.margin = margin
        self.left, self.right = Exp(n, rebase), Exp(n, rebase)

    def singular_values(self, spectrum: Tensor) -> Tensor:
        """From the free numbers."""
        return 1 + 2 * self.margin * (torch.sigmoid(spectrum) - 0.5)

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix."""
        left, right, spectrum = free
        matrix: Tensor = (self.left(left) * self.singular_values(spectrum)) @ self.right(right).mT
        return matrix

    @torch.no_grad()
    def in_manifold(self, matrix: Tensor, tol: float | None = None) -> bool:
        """Whether every singular value lies within the margin, to ``tol``."""
        if matrix.shape != (self.n, self.n) or matrix.is_complex() or not bool(torch.isfinite(matrix).all()):
            return False
        limit = member_tolerance(matrix) if tol is None else tol
        gaps = (torch.linalg.svdvals(widened(matrix)) - 1).abs()
        return bool((gaps <= self.margin + limit).all())

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """By the singular value decomposition; values on the border of the margin are drawn a little inside."""
        left, values, right = torch.linalg.svd(matrix.to(torch.float64))
        share = ((values - 1) / (2 * self.margin) + 0.5) if self.margin else torch.full_like(values, 0.5)
        spectrum = torch.logit(share.clamp(1e-6, 1 - 1e-6))
        if self.left.rebase is None:  # a logarithm needs determinant one in both
            for factor in (left, right.mT):
                if float(torch.linalg.det(factor)) < 0:
                    raise InvalidInput("the svd map without rebasing reaches factors of determinant +1 only.")
        free = []
        for part, factor in ((self.left, left), (self.right, right.mT)):
            free += list(part.invert(factor.to(matrix.dtype).contiguous()))
        return *free, spectrum

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Two starts, singular values one."""
        left, right = (self.left.draw(start, generator=generator) for _ in range(2))
        return *left, *right, torch.zeros(self.n, dtype=torch.float64)

    def _value_at(self, free: tuple[Tensor, ...]) -> Tensor:
        left, right = self.left._value_at(free[:1]), self.right._value_at(free[1:2])
        return (left * self.singular_values(free[2])) @ right.mT

    def _recalled(self, matrix: Tensor) -> tuple[Tensor, ...] | None:
        return None

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.n}, margin={self.margin}"
