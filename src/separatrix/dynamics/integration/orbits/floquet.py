"""The certificate of a periodic orbit: how perturbations of all tokens have grown after one period."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import Result
from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.arithmetic.linear_systems import inv_ex

ROUNDING = 1e-12
"""Error of a monodromy that was computed without any other."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Floquet(Result):
    """Multipliers of a periodic orbit of m clusters.

    ``quotient`` belongs to motions of whole clusters, the multiplier 1 along the orbit first; ``transversal`` to
    motions that split a cluster, each counted once less than the cluster has tokens. ``residual`` is the distance
    between start and end of the closed orbit. ``margin`` is the estimated error of the largest modulus: multipliers
    within it of the unit circle decide nothing.
    """

    period: float
    quotient: Complex[Tensor, " q"]
    transversal: Complex[Tensor, "m e"]
    sizes: Float[Tensor, " m"]
    residual: float
    margin: float

    @property
    def multipliers(self) -> Complex[Tensor, " directions"]:
        """All of them, with their multiplicities, largest modulus first."""
        copies = (self.sizes - 1).clamp_min(0).round().long()
        split = [row.repeat(int(count)) for row, count in zip(self.transversal, copies, strict=True)]
        every = torch.cat([self.quotient, *split])
        return every[every.abs().argsort(descending=True)]

    @property
    def exponents(self) -> Float[Tensor, " directions"]:
        """Real parts of log(multiplier) / period, largest first; one of them is zero."""
        return self.multipliers.abs().log() / self.period

    @property
    def quotient_abscissa(self) -> float:
        """Largest exponent of motions of whole clusters across the orbit."""
        rest = self._across.abs()
        return float(rest.max().log() / self.period) if len(rest) else -float("inf")

    @property
    def transversal_abscissa(self) -> float:
        """Largest exponent of motions that split a cluster; -inf if every cluster is one token."""
        split = self.transversal[self.sizes > 1].abs()
        return float(split.max().log() / self.period) if split.numel() else -float("inf")

    @property
    def largest(self) -> float:
        """Largest modulus of a multiplier across the orbit."""
        return max([float(part.abs().max()) for part in (self._across, self._split) if part.numel()], default=0.0)

    @property
    def stable(self) -> bool:
        """Every multiplier but the one along the orbit lies inside the unit circle, beyond doubt."""
        return self.largest < 1 - self.margin

    @property
    def marginal(self) -> bool:
        """The largest multiplier across the orbit lies on the unit circle within its error."""
        return abs(self.largest - 1) <= self.margin

    @property
    def index(self) -> int:
        """Number of multipliers outside the unit circle, with their multiplicities."""
        copies = (self.sizes - 1).clamp_min(0)
        split = ((self.transversal.abs() > 1 + self.margin).sum(dim=-1) * copies).sum()
        return int((self._across.abs() > 1 + self.margin).sum()) + round(float(split))

    @property
    def _across(self) -> Tensor:
        """The quotient multipliers without the one along the orbit."""
        return self.quotient[1:]

    @property
    def _split(self) -> Tensor:
        return self.transversal[self.sizes > 1]


def certificates(
    period: Float[Tensor, " batch"],
    section: Float[Tensor, "batch k k"],
    parting: Float[Tensor, "batch m e e"],
    sizes: Float[Tensor, "batch m"],
    residual: Float[Tensor, " batch"],
    error: Float[Tensor, " batch"],
) -> list[Floquet]:
    """From the derivative of the return to a section, and that of the parting of each cluster.

    ``error`` is the norm of what is estimated to be wrong with them. It moves a multiplier by the error times its
    condition number, or by the k-th root of the error where k multipliers fall together.
    """
    quotient, reach = _perturbed(section, error.unsqueeze(-1))
    transversal, split_reach = _perturbed(parting, error[:, None, None])
    split = (sizes > 1).unsqueeze(-1)
    largest = _largest(quotient.abs(), torch.where(split, transversal.abs(), 0.0))
    margin = _largest(reach, torch.where(split, split_reach, 0.0)) - largest
    quotient = torch.cat([torch.ones_like(period).unsqueeze(-1).to(quotient.dtype), quotient], dim=-1)
    rows = zip(period.tolist(), quotient, transversal, sizes, residual.tolist(), margin.tolist(), strict=True)
    return [Floquet(*row) for row in rows]


def _largest(first: Float[Tensor, "batch k"], second: Float[Tensor, "batch m e"]) -> Float[Tensor, " batch"]:
    every = torch.cat([first, second.flatten(1)], dim=-1)
    return torch.nn.functional.pad(every, (0, 1)).amax(dim=-1)


def _perturbed(
    matrix: Float[Tensor, "*batch k k"], error: Float[Tensor, "*axes 1"]
) -> tuple[Complex[Tensor, "*batch k"], Float[Tensor, "*batch k"]]:
    """Eigenvalues, and the moduli that they may have with an error of the matrix."""
    if not matrix.numel():
        return matrix.new_zeros(matrix.shape[:-1], dtype=torch.complex128), matrix.new_zeros(matrix.shape[:-1])
    values, vectors = eig(matrix)
    size = torch.linalg.matrix_norm(matrix).clamp_min(1.0).unsqueeze(-1)
    wrong = error + ROUNDING * size
    inverse, info = inv_ex(vectors)
    condition = torch.linalg.vector_norm(inverse, dim=-1) * torch.linalg.vector_norm(vectors, dim=-2)
    condition = torch.where((info.unsqueeze(-1) == 0) & torch.isfinite(condition), condition, torch.inf)
    root = size * (wrong / size) ** (1 / matrix.shape[-1])
    return values, values.abs() + torch.minimum(condition * wrong, root)
