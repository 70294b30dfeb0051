"""Families by name, for the command line and settings of experiments."""

from __future__ import annotations

from separatrix.core import InvalidInput, resolve

from .base import AbstractEnsemble
from .gaussian import GOE, Antisymmetric, Elliptic, Gaussian
from .invariant import Haar, SymmetricOrthogonal

ENSEMBLES: dict[str, AbstractEnsemble] = {
    ensemble.name: ensemble for ensemble in (Gaussian(), Haar(), GOE(), Antisymmetric(), SymmetricOrthogonal())
}
"""Families without parameters."""

PARAMETRIC_ENSEMBLES: dict[str, type[AbstractEnsemble]] = {kind.name: kind for kind in (Elliptic,)}
"""Families with one parameter, written ``name:parameter``."""


def find_ensemble(ensemble: str | AbstractEnsemble) -> AbstractEnsemble:
    """A family from its name, or the family itself; ``elliptic:0.5`` gives the elliptic one with that tau.

    Raises:
        InvalidInput: an unknown name, a parameter out of range, or neither a name nor a family.

    Example:
        >>> find_ensemble("elliptic:-0.5")
        Elliptic(tau=-0.5)
    """
    families = {name: kind.parse for name, kind in PARAMETRIC_ENSEMBLES.items()}
    return resolve("ensemble", ensemble, ENSEMBLES, base=AbstractEnsemble, families=families)


def register_ensemble(ensemble: AbstractEnsemble) -> AbstractEnsemble:
    """Have a family found by its name, compared by the advisor and drawn in its colour; returns it.

    Raises:
        InvalidInput: another family has that name.

    Example:
        >>> register_ensemble(Gaussian()) == Gaussian()
        True
    """
    if not isinstance(ensemble, AbstractEnsemble):
        raise InvalidInput(f"ensemble must be a family, an AbstractEnsemble object; got {type(ensemble).__name__}.")
    known = ENSEMBLES.get(ensemble.name)
    if ensemble.name in PARAMETRIC_ENSEMBLES or (known is not None and type(known) is not type(ensemble)):
        raise InvalidInput(f"the name {ensemble.name!r} is taken by another family.")
    ENSEMBLES[ensemble.name] = ensemble
    return ensemble
