"""Families by name, for the command line and settings of experiments."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

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


EnteredFamily = TypeVar("EnteredFamily", bound=AbstractEnsemble | type[AbstractEnsemble])


def register_ensemble(ensemble: EnteredFamily) -> EnteredFamily:
    """Have a family found by its name, compared by the advisor and drawn in its colour; returns it.

    A class stands for a family with one parameter: ``name:text`` is what its ``parse(text)`` makes.

    Raises:
        InvalidInput: another family, or the same one with another parameter, has that name.

    Example:
        >>> register_ensemble(Gaussian()) == Gaussian()
        True
    """
    if isinstance(ensemble, type) and issubclass(ensemble, AbstractEnsemble):
        if ensemble.parse.__func__ is AbstractEnsemble.parse.__func__:  # type: ignore[attr-defined]
            raise InvalidInput(f"the class {ensemble.__name__} has no parse for a parameter; register an object of it.")
        plain = ENSEMBLES.get(ensemble.name)
        if PARAMETRIC_ENSEMBLES.get(ensemble.name, ensemble) is not ensemble or type(plain) not in (
            ensemble,
            type(None),
        ):
            raise InvalidInput(f"the name {ensemble.name!r} is taken by another family.")
        PARAMETRIC_ENSEMBLES[ensemble.name] = ensemble
        return ensemble
    if not isinstance(ensemble, AbstractEnsemble):
        raise InvalidInput(f"ensemble must be a family, an AbstractEnsemble object; got {type(ensemble).__name__}.")
    known = ENSEMBLES.get(ensemble.name, PARAMETRIC_ENSEMBLES.get(ensemble.name, ensemble))
    if not _is_the_same(ensemble, known):
        raise InvalidInput(f"the name {ensemble.name!r} is taken by another family.")
    ENSEMBLES[ensemble.name] = ensemble
    return ensemble


def _is_the_same(ensemble: AbstractEnsemble, known: AbstractEnsemble | type[AbstractEnsemble]) -> bool:
    """Whether registering a family again changes nothing; two objects of a class without fields are the same."""
    if type(ensemble) is known:  # the family of its own parameter, under the bare name
        return True
    same_kind = type(ensemble) is type(known)
    return same_kind and (ensemble == known or not dataclasses.is_dataclass(ensemble))
