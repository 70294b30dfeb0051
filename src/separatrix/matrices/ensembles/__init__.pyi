from .base import AbstractEnsemble as AbstractEnsemble
from .catalogue import (
    ENSEMBLES as ENSEMBLES,
    PARAMETRIC_ENSEMBLES as PARAMETRIC_ENSEMBLES,
    find_ensemble as find_ensemble,
    register_ensemble as register_ensemble,
)
from .dense_block import DenseBlock as DenseBlock
from .eigenvalues import goe_eigenvalues as goe_eigenvalues, haar_cosines as haar_cosines
from .facts import Facts as Facts
from .gaussian import GOE as GOE, Antisymmetric as Antisymmetric, Elliptic as Elliptic, Gaussian as Gaussian
from .initialisers import (
    antisymmetric_ as antisymmetric_,
    gaussian_ as gaussian_,
    goe_ as goe_,
    haar_ as haar_,
    initialise_ as initialise_,
)
from .invariant import (
    BiInvariant as BiInvariant,
    Haar as Haar,
    Normal as Normal,
    RotationInvariant as RotationInvariant,
    SymmetricOrthogonal as SymmetricOrthogonal,
)
from .rectangular import (
    AbstractRectangularEnsemble as AbstractRectangularEnsemble,
    RectangularGaussian as RectangularGaussian,
    RectangularOrthogonal as RectangularOrthogonal,
)
