from . import ensembles as ensembles, initialisers as initialisers
from .ensembles import (
    ENSEMBLES as ENSEMBLES,
    GOE as GOE,
    AbstractEnsemble as AbstractEnsemble,
    AbstractRectangularEnsemble as AbstractRectangularEnsemble,
    Antisymmetric as Antisymmetric,
    BiInvariant as BiInvariant,
    DenseBlock as DenseBlock,
    Elliptic as Elliptic,
    Gaussian as Gaussian,
    Haar as Haar,
    Normal as Normal,
    RectangularGaussian as RectangularGaussian,
    RectangularOrthogonal as RectangularOrthogonal,
    RotationInvariant as RotationInvariant,
    SymmetricOrthogonal as SymmetricOrthogonal,
    find_ensemble as find_ensemble,
    goe_eigenvalues as goe_eigenvalues,
    haar_cosines as haar_cosines,
)
from .initialisers import (
    antisymmetric_ as antisymmetric_,
    gaussian_ as gaussian_,
    goe_ as goe_,
    haar_ as haar_,
)
