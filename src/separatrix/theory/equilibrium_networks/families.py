"""From what a matrix family says of itself to what theory needs: its correlation, eigenvalue law, fourth moment.

All values are for unit scale, tr W^T W = 1. No family is named here: everything follows from ``Facts``. A family that
states none, or not those that a formula needs, is refused, not guessed.
"""

from __future__ import annotations

from torch import Tensor

from separatrix.core import OutsideTheory, require_kind
from separatrix.matrices.ensembles import AbstractEnsemble, Facts

from ..free_probability import AbstractLaw, Discrete, Semicircle, TwoPoint


def known_facts(ensemble: AbstractEnsemble) -> Facts:
    """The facts of a family.

    Raises:
        OutsideTheory: it states none.
    """
    facts = ensemble.facts()
    if facts is None:
        raise unknown_family(ensemble)
    require_kind(facts, f"facts of the family {ensemble.name!r}", Facts, "a Facts object or None")
    return facts


def gaussian_correlation(ensemble: AbstractEnsemble) -> float | None:
    """tau of a family with Gaussian entries, E[W_ij W_ji] = tau / N at unit scale; ``None`` for other families."""
    return known_facts(ensemble).tau


def symmetric_law(ensemble: AbstractEnsemble) -> AbstractLaw | None:
    """The eigenvalue law of a symmetric family at unit scale; ``None`` if the family is not symmetric."""
    facts = known_facts(ensemble)
    if not facts.is_symmetric:
        return None
    if facts.eigenvalues is None or facts.masses is None:
        return Semicircle(1.0)  # symmetric with Gaussian entries
    values = facts.eigenvalues.real
    if values.sort().values.tolist() == [-1.0, 1.0] and facts.masses.tolist() == [0.5, 0.5]:
        return TwoPoint(1.0)  # the same law, with closed transforms
    return Discrete(values, facts.masses)


def eigenvalue_atoms(ensemble: AbstractEnsemble) -> tuple[Tensor, Tensor] | None:
    """Eigenvalues of a normal family at unit scale and their masses; ``None`` if they are not a finite list."""
    facts = known_facts(ensemble)
    if facts.eigenvalues is None or facts.masses is None:
        return None
    return facts.eigenvalues, facts.masses


def is_bi_invariant(ensemble: AbstractEnsemble) -> bool:
    """Whether left and right rotations leave the law unchanged, as far as moments see."""
    return known_facts(ensemble).bi_invariant


def require_uniform_basis(ensemble: AbstractEnsemble, what: str) -> None:
    """Refuse a family that is not in general position to diagonal matrices."""
    if not known_facts(ensemble).uniform_basis:
        raise OutsideTheory(
            f"{what} need a family whose basis is uniform; that of {ensemble.name!r} is not. "
            "Sample matrices and measure instead."
        )


def unknown_family(ensemble: AbstractEnsemble, what: str = "theory") -> OutsideTheory:
    """The error for a family that no formula covers."""
    return OutsideTheory(f"no {what} covers the ensemble {ensemble.name!r}; sample matrices and measure instead.")
