"""What a matrix family knows of itself, as plain numbers from which theory derives its laws."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import InvalidInput, as_float64, as_tensor, require_flags, require_number
from separatrix.core.names import suggest_options

REAL = 1e-12
"""An imaginary part below this, for eigenvalues of unit mean square, counts as zero."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class Facts:
    """A family at unit scale, normalised trace of W^T W equal to 1, as the width grows.

    Make one with ``gaussian``, ``two_sided`` or ``normal``; what is left out is not known, and theory that would
    need it refuses. The contract test of families checks every fact against sampled matrices.
    """

    excess: float
    """tr (W^T W)^2 - 1: 1 for Gaussian entries, 0 for orthogonal matrices."""
    tau: float | None = None
    """Of a family with jointly Gaussian entries: the correlation of W_ij and W_ji."""
    bi_invariant: bool = False
    """Whether mixed moments of W and W^T are those of a matrix with independent uniform left and right bases."""
    eigenvalues: Complex[Tensor, " k"] | None = None
    """Of a normal family whose eigenvalues have a law of finitely many values: those values."""
    masses: Float[Tensor, " k"] | None = None
    """Their probabilities."""
    uniform_basis: bool = True
    """Whether W is in general position to every fixed diagonal matrix; nonlinear networks need it."""

    def __post_init__(self) -> None:
        require_number(self.excess, "excess", at_least=-REAL)
        if self.tau is not None:
            require_number(self.tau, "tau", at_least=-1, at_most=1)
        require_flags(bi_invariant=self.bi_invariant, uniform_basis=self.uniform_basis)
        if (self.eigenvalues is None) != (self.masses is None):
            raise InvalidInput("eigenvalues and masses must be given together; Facts.normal makes both.")

    @classmethod
    def gaussian(cls, tau: float) -> Facts:
        """Jointly Gaussian entries with E[W_ij W_ji] = tau / width: 1 is symmetric, 0 independent, -1 antisymmetric."""
        tau = require_number(tau, "tau", at_least=-1, at_most=1)
        return cls(excess=1.0, tau=tau, bi_invariant=tau == 0)

    @classmethod
    def two_sided(cls, excess: float, *, uniform_basis: bool = True) -> Facts:
        """Independent left and right bases; ``excess`` is tr (W^T W)^2 - 1."""
        rule = "a number of at least 0, the variance of the squared singular values"
        excess = require_number(excess, "excess", at_least=0, rule=rule)
        return cls(excess=excess, bi_invariant=True, uniform_basis=uniform_basis)

    @classmethod
    def normal(cls, eigenvalues: Any, masses: Any = None, *, uniform_basis: bool = True) -> Facts:
        """Normal matrices (symmetric ones included) whose eigenvalues take finitely many values; unit mean square.

        Args:
            eigenvalues: the values, closed under conjugation.
            masses: their probabilities; equal if left out.
            uniform_basis: whether the basis of eigenvectors is uniform.
        """
        values = as_tensor(eigenvalues, "eigenvalues", dtype=torch.complex128).reshape(-1)
        weights = torch.ones(len(values), dtype=torch.float64) if masses is None else as_float64(masses, "masses")
        if weights.shape != values.shape or bool((weights < 0).any()) or not float(weights.sum()) > 0:
            raise InvalidInput("masses must be one number of at least 0 for each eigenvalue, not all zero.")
        weights = weights / weights.sum()
        power = float((weights * values.abs().square()).sum())
        if abs(power - 1) > 1e-6:
            raise InvalidInput(f"eigenvalues must have a mean squared modulus of 1, the unit scale; got {power:.6g}.")
        excess = float((weights * values.abs().pow(4)).sum()) - 1
        return cls(excess=excess, eigenvalues=values, masses=weights, uniform_basis=uniform_basis)

    @property
    def is_symmetric(self) -> bool:
        """Whether W equals its transpose."""
        return self.tau == 1 or self._vanishes("imag")

    @property
    def is_antisymmetric(self) -> bool:
        """Whether W equals minus its transpose."""
        return self.tau == -1 or self._vanishes("real")

    @property
    def mean(self) -> float:
        """tr W."""
        return 0.0 if self.eigenvalues is None else self._average(self.eigenvalues)

    @property
    def square(self) -> float:
        """tr W^2."""
        if self.eigenvalues is not None:
            return self._average(self.eigenvalues.square())
        return 0.0 if self.tau is None else self.tau

    @property
    def third(self) -> float:
        """tr W^2 W^T."""
        return 0.0 if self.eigenvalues is None else self._average(self.eigenvalues * self.eigenvalues.abs().square())

    def _average(self, values: Tensor) -> float:
        assert self.masses is not None
        return float((self.masses * values.real).sum())

    def _vanishes(self, part: str) -> bool:
        return self.eigenvalues is not None and bool((getattr(self.eigenvalues, part).abs() <= REAL).all())
