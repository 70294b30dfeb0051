from .eigenvalues import (
    ritz_values as ritz_values,
    spectral_abscissa as spectral_abscissa,
    spectral_radius as spectral_radius,
)
from .jacobian import JacobianAt as JacobianAt
from .norm import non_normality as non_normality, spectral_norm as spectral_norm
