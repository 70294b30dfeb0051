r"""Products of reflections, as one triangular solve: :math:`H_1 \cdots H_m = I - U T^{-1} U^\top`."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options

from .manifold import AbstractOrthogonalMap, widened
from .starts import STARTS, rotation_start


@final
@suggest_options
class Householder(AbstractOrthogonalMap):
    r"""Products of m reflections and a fixed diagonal of signs, :math:`H_1 \cdots H_m D`.

    Vector k is zero before place k, so m = n reaches every orthogonal matrix (for its signs). With
    :math:`T = \mathrm{triu}(U^\top U, 1) + \tfrac12\mathrm{diag}(U^\top U)` the product is :math:`I - U T^{-1} U^\top`.

    Args:
        n: size.
        n_reflections: m; n by default. Fewer make a smaller family and cost O(m n^2).

    Source: kerg2022, section 3.3 and appendix D.3.
    """

    name = "householder"
    free_names = ("vectors",)
    signs: Tensor

    def __init__(self, n: int, n_reflections: int | None = None) -> None:
        super().__init__(n)
        count = n if n_reflections is None else require_integer(n_reflections, "n_reflections", at_least=1)
        if count > n:
            raise InvalidInput(f"n_reflections must be at most n = {n}; got {count}.")
        self.n_reflections = count
        self.register_buffer("signs", torch.ones(n))

    @property
    def _places(self) -> Tensor:
        rows, columns = torch.triu_indices(self.n_reflections, self.n, device=self.signs.device)
        return rows * self.n + columns

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix.

        Raises:
            InvalidInput: a vector of zeros, which has no reflection.
        """
        (entries,) = free
        wide = widened(entries)
        zeros = wide.new_zeros(self.n_reflections * self.n)
        vectors = zeros.index_put((self._places,), wide).reshape(self.n_reflections, self.n)
        gram = vectors @ vectors.mT
        squares = gram.diagonal()
        if not bool((squares.detach() > 0).all()) and bool((squares.detach() == 0).any()):
            zero = int((squares.detach() == 0).nonzero()[0])
            raise InvalidInput(f"vector {zero} of the reflections is zero; it has no direction to reflect along.")
        unit = vectors / squares.sqrt().unsqueeze(1)  # length one: the triangle stays well scaled
        triangle = (unit @ unit.mT).triu(1) + 0.5 * torch.eye(len(unit), dtype=unit.dtype, device=unit.device)
        inner = torch.linalg.solve_triangular(triangle, unit, upper=True)
        identity = torch.eye(self.n, dtype=unit.dtype, device=unit.device)
        return ((identity - unit.mT @ inner) * self.signs.to(unit.dtype)).to(entries.dtype)

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """By eliminating column after column; the signs that are left become D.

        Raises:
            InvalidInput: more reflections are needed than this map has.
        """
        left = matrix.to("cpu", torch.float64).clone()
        vectors = torch.zeros(self.n_reflections, self.n, dtype=torch.float64)
        for k in range(self.n_reflections):
            column = left[k:, k].clone()
            column[0] += 1.0 if float(column[0]) >= 0 else -1.0  # away from zero: the column has length one
            vectors[k, k:] = column
            left[k:] -= torch.outer(column, 2 / column.dot(column) * (column @ left[k:]))
        rest = (left - torch.diag(torch.sign(left.diagonal()))).abs().max()
        if float(rest) > 1e-3:
            raise InvalidInput(
                f"{self.n_reflections} reflections do not reach this matrix; n_reflections={self.n} reaches every one."
            )
        self.signs = torch.sign(left.diagonal()).to(self.signs)
        return (vectors.flatten()[self._places.cpu()],)

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Gaussian vectors, or a named rotation if there are enough reflections."""
        if start is not None:
            choose("start", start, STARTS)
            return self.invert(rotation_start(start, self.n, generator=generator))
        return (torch.randn(len(self._places), dtype=torch.float64, generator=generator),)
