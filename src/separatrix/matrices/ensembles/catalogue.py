"""Square families that need no arguments, by name, for the command line and settings of experiments."""

from __future__ import annotations

from separatrix.core import unknown_name

from .base import AbstractEnsemble
from .gaussian import GOE, Antisymmetric, Elliptic, Gaussian
from .invariant import Haar, SymmetricOrthogonal

ENSEMBLES: dict[str, AbstractEnsemble] = {
    ensemble.name: ensemble for ensemble in (Gaussian(), Haar(), GOE(), Antisymmetric(), SymmetricOrthogonal())
}


def find_ensemble(name: str) -> AbstractEnsemble:
    """A family by name; ``elliptic:0.5`` gives the elliptic one with that tau.

    Example:
        >>> find_ensemble("elliptic:-0.5")
        Elliptic(tau=-0.5)
    """
    kind, colon, argument = name.partition(":")
    if kind == Elliptic.name and colon:
        try:
            return Elliptic(float(argument))
        except ValueError as error:
            if argument.replace(".", "").replace("-", "").isdigit():
                raise error
    if name not in ENSEMBLES:
        raise unknown_name("ensemble", name, [*ENSEMBLES, "elliptic:TAU"])
    return ENSEMBLES[name]
