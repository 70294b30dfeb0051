"""What theory needs to know of a matrix family: its correlation, its eigenvalue law, its fourth moment.

All values are for unit scale, tr W^T W = 1. This is the one place that maps families to theory; a family it does not
know is refused, not guessed.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from separatrix.core import OutsideTheory
from separatrix.matrices.ensembles import (
    GOE,
    AbstractEnsemble,
    Antisymmetric,
    BiInvariant,
    Elliptic,
    Gaussian,
    Haar,
    Normal,
    RotationInvariant,
    SymmetricOrthogonal,
)

from ..free_probability import AbstractLaw, Discrete, Semicircle, TwoPoint


def gaussian_correlation(ensemble: AbstractEnsemble) -> float | None:
    """tau of a family with Gaussian entries, E[W_ij W_ji] = tau / N at unit scale; ``None`` for other families."""
    match ensemble:
        case Gaussian():
            return 0.0
        case GOE():
            return 1.0
        case Antisymmetric():
            return -1.0
        case Elliptic(tau=tau):
            return float(tau)
    return None


@functools.lru_cache(maxsize=128)
def symmetric_law(ensemble: AbstractEnsemble) -> AbstractLaw | None:
    """The eigenvalue law of a symmetric family at unit scale; ``None`` if the family is not symmetric."""
    match ensemble:
        case GOE() | Elliptic(tau=1):
            return Semicircle(1.0)
        case SymmetricOrthogonal():
            return TwoPoint(1.0)
        case RotationInvariant(eigenvalues=values):
            return Discrete(values)
    return None


def eigenvalue_sample(ensemble: AbstractEnsemble) -> Tensor | None:
    """Equally likely eigenvalues of a normal family at unit scale, complex; ``None`` if they are not a finite list."""
    match ensemble:
        case SymmetricOrthogonal():
            return torch.tensor([1.0, -1.0], dtype=torch.complex128)
        case RotationInvariant(eigenvalues=values) | Normal(eigenvalues=values):
            return values.to(torch.complex128)
    return None


def is_bi_invariant(ensemble: AbstractEnsemble) -> bool:
    """Whether left and right rotations leave the law unchanged."""
    return isinstance(ensemble, Gaussian | Haar | BiInvariant) or gaussian_correlation(ensemble) == 0


def excess(ensemble: AbstractEnsemble) -> float:
    """k = tr (W^T W)^2 - 1 at unit scale: 1 for Gaussian entries, 0 for orthogonal matrices."""
    if gaussian_correlation(ensemble) is not None:
        return 1.0
    match ensemble:
        case Haar() | SymmetricOrthogonal():
            return 0.0
        case BiInvariant(singular_values=values):
            return float(values.pow(4).mean()) - 1
        case RotationInvariant(eigenvalues=values) | Normal(eigenvalues=values):
            return float(values.abs().pow(4).mean()) - 1
    raise unknown_family(ensemble)


def unknown_family(ensemble: AbstractEnsemble) -> OutsideTheory:
    """The error for a family that no formula covers."""
    return OutsideTheory(f"no theory covers the ensemble {ensemble.name!r}; sample matrices and measure instead.")
