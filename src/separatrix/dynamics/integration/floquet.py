"""The certificate of a periodic orbit: how perturbations of all tokens have grown after one period."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import Result

MARGINAL = 1e-3
"""Multipliers within this of the unit circle decide nothing. The motion around the orbit is known to 1e-8; where a
second multiplier falls on the one along the orbit (a neutral centre), the two part by the root of that error, 1e-4."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Floquet(Result):
    """Multipliers of a periodic orbit of m clusters.

    ``quotient`` belongs to motions of whole clusters, the multiplier 1 along the orbit included; ``transversal`` to
    motions that split a cluster, each counted once less than the cluster has tokens. ``residual`` is the distance
    between start and end of the closed orbit.
    """

    period: float
    quotient: Complex[Tensor, " q"]
    transversal: Complex[Tensor, "m e"]
    sizes: Float[Tensor, " m"]
    residual: float

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
        return self.largest < 1 - MARGINAL

    @property
    def marginal(self) -> bool:
        """The largest multiplier across the orbit lies on the unit circle within rounding."""
        return abs(self.largest - 1) <= MARGINAL

    @property
    def index(self) -> int:
        """Number of multipliers outside the unit circle, with their multiplicities."""
        copies = (self.sizes - 1).clamp_min(0)
        split = ((self.transversal.abs() > 1 + MARGINAL).sum(dim=-1) * copies).sum()
        return int((self._across.abs() > 1 + MARGINAL).sum()) + round(float(split))

    @property
    def _across(self) -> Tensor:
        """The quotient multipliers without the one along the orbit, which is nearest to 1."""
        along = int((self.quotient - 1).abs().argmin())
        return torch.cat([self.quotient[:along], self.quotient[along + 1 :]])

    @property
    def _split(self) -> Tensor:
        return self.transversal[self.sizes > 1]
