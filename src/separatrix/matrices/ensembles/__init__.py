"""Families of random weight matrices: square, rectangular, in pairs, and their exact eigenvalue samplers."""

from .base import AbstractEnsemble
from .catalogue import ENSEMBLES, find_ensemble
from .gaussian import GOE, Antisymmetric, Elliptic, Gaussian
from .invariant import BiInvariant, Haar, Normal, RotationInvariant, SymmetricOrthogonal
from .rectangular import AbstractRectangularEnsemble, DenseBlock, RectangularGaussian, RectangularOrthogonal
from .spectra import goe_eigenvalues, haar_cosines

__all__ = [
    "ENSEMBLES",
    "GOE",
    "AbstractEnsemble",
    "AbstractRectangularEnsemble",
    "Antisymmetric",
    "BiInvariant",
    "DenseBlock",
    "Elliptic",
    "Gaussian",
    "Haar",
    "Normal",
    "RectangularGaussian",
    "RectangularOrthogonal",
    "RotationInvariant",
    "SymmetricOrthogonal",
    "find_ensemble",
    "goe_eigenvalues",
    "haar_cosines",
]
