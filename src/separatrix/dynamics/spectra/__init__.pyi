from .abscissa import spectral_abscissa as spectral_abscissa
from .krylov import JacobianAt as JacobianAt, ritz_values as ritz_values
from .norm import non_normality as non_normality, spectral_norm as spectral_norm
from .radius import spectral_radius as spectral_radius
