"""The result of every closed-form spectrum: few blocks with multiplicities, expanded only on request."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Complex128, Float, Shaped
from torch import Tensor

from separatrix.core import InvalidInput, Result

MARGINAL = 1e-9
"""An abscissa within this many units (largest modulus of an eigenvalue of value) of zero decides nothing."""

RESTS = 1e-4
"""Largest speed, in the same unit, at which a point handed in still counts as an equilibrium."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BlockSpectrum(Result):
    """Tangent spectrum of a clustered state of n tokens in dimension d, all n (d - 1) eigenvalues in compressed form.

    The quotient block describes motions that keep clusters together and holds each of its eigenvalues once. Cluster a
    splits along its transversal eigenvalues, each of which appears (size - 1) times. Directions along a token's own
    radius are no perturbations on the sphere and are left out unless ``expand(ambient=True)`` asks for them.

    Attributes:
        kind: ``"consensus"``, ``"bipartite"``, ``"sign pattern"``, ``"clustering"``, ``"polygonal"`` or ``"cycle"``.
        quotient: eigenvalues that appear once.
        transversal: eigenvalues of each cluster, one row per cluster.
        sizes: tokens per cluster; real weights mean the limit of many tokens with these fractions.
        scale: largest modulus of an eigenvalue of value, the unit of the tolerance.
        radial: the ambient eigenvalue of each cluster's radial directions, where they decouple.
        residual: speed at the given point (0 for a point that is an equilibrium by construction).
    """

    kind: str
    quotient: Shaped[Tensor, "*batch q"]
    transversal: Shaped[Tensor, "*batch clusters t"]
    sizes: tuple[int | float, ...]
    scale: Float[Tensor, "*batch"]
    radial: Float[Tensor, "*batch clusters"] | None = None
    residual: Float[Tensor, "*batch"] | None = None

    @property
    def is_weighted(self) -> bool:
        """Whether sizes are real weights (many tokens with these fractions) instead of numbers of tokens."""
        return any(float(size) != round(size) for size in self.sizes)

    @property
    def blocks(self) -> list[tuple[Tensor, int | float]]:
        """Pairs of eigenvalues and how often each of them appears."""
        clusters = [(self.transversal[..., a, :], size - 1) for a, size in enumerate(self.sizes)]
        return [(self.quotient, 1), *clusters]

    def expand(self, *, ambient: bool = False) -> Complex128[Tensor, "*batch all"]:
        """All n (d - 1) tangent eigenvalues, largest real part first; n d of them if ``ambient``."""
        if self.is_weighted:
            raise InvalidInput(
                "sizes are real weights, which have no finite list of eigenvalues; "
                "read quotient_abscissa and transversal_abscissa instead."
            )
        pieces = [self.quotient.to(torch.complex128)]
        for a, size in enumerate(self.sizes):
            pieces.append(self.transversal[..., a, :].to(torch.complex128).repeat_interleave(round(size) - 1, dim=-1))
            if ambient:
                pieces.append(self._radial_directions(a).repeat_interleave(round(size), dim=-1))
        every = torch.cat(pieces, dim=-1)
        return every.gather(-1, every.real.argsort(dim=-1, descending=True, stable=True))

    @property
    def quotient_abscissa(self) -> float | Tensor:
        """Largest real part among motions that keep clusters together."""
        return number(self.quotient.real.amax(-1))

    @property
    def transversal_abscissa(self) -> float | Tensor:
        """Largest real part among motions that split a cluster; minus infinity if every cluster is one token."""
        splitting = [a for a, size in enumerate(self.sizes) if size > 1 or self.is_weighted]
        if not splitting or self.transversal.shape[-1] == 0:
            return number(torch.full_like(self.scale, -torch.inf))
        return number(self.transversal[..., splitting, :].real.amax(dim=(-2, -1)))

    @property
    def abscissa(self) -> float | Tensor:
        """Largest real part of the tangent spectrum; a float without batch axes, else a tensor."""
        return number(torch.maximum(self._tensor("quotient_abscissa"), self._tensor("transversal_abscissa")))

    @property
    def stable(self) -> bool | Tensor:
        """Whether the point is an equilibrium and every tangent eigenvalue lies clearly in the left half plane."""
        settled = self._tensor("abscissa") < -MARGINAL * self.scale
        if self.residual is not None:
            settled = settled & (self.residual <= RESTS * self.scale)
        return bool(settled) if settled.ndim == 0 else settled

    @property
    def marginal(self) -> bool | Tensor:
        """Whether the abscissa is zero up to rounding, so that linearisation decides nothing."""
        undecided = self._tensor("abscissa").abs() <= MARGINAL * self.scale
        return bool(undecided) if undecided.ndim == 0 else undecided

    def _tensor(self, name: str) -> Tensor:
        return torch.as_tensor(getattr(self, name), dtype=self.scale.dtype, device=self.scale.device)

    def _radial_directions(self, cluster: int) -> Tensor:
        if self.radial is None:
            raise InvalidInput("radial directions decouple only where every token lies on one eigenvector of value.")
        return self.radial[..., cluster].to(torch.complex128).unsqueeze(-1)


def number(value: Tensor) -> float | Tensor:
    """A float for a single number, the tensor itself for a batch."""
    return float(value) if value.ndim == 0 else value
