from .base import AbstractEnsemble as AbstractEnsemble
from .catalogue import ENSEMBLES as ENSEMBLES, find_ensemble as find_ensemble
from .eigenvalues import goe_eigenvalues as goe_eigenvalues, haar_cosines as haar_cosines
from .gaussian import GOE as GOE, Antisymmetric as Antisymmetric, Elliptic as Elliptic, Gaussian as Gaussian
from .initialisers import antisymmetric_ as antisymmetric_, gaussian_ as gaussian_, goe_ as goe_, haar_ as haar_
from .invariant import (
    BiInvariant as BiInvariant,
    Haar as Haar,
    Normal as Normal,
    RotationInvariant as RotationInvariant,
    SymmetricOrthogonal as SymmetricOrthogonal,
)
from .rectangular import (
    AbstractRectangularEnsemble as AbstractRectangularEnsemble,
    DenseBlock as DenseBlock,
    RectangularGaussian as RectangularGaussian,
    RectangularOrthogonal as RectangularOrthogonal,
)
