from .nonnormality import (
    commutator_norm as commutator_norm,
    henrici as henrici,
    henrici_bound as henrici_bound,
    numerical_abscissa as numerical_abscissa,
    numerical_radius as numerical_radius,
    power_norms as power_norms,
)
from .pseudospectra import kreiss_constant as kreiss_constant, pseudospectrum as pseudospectrum
from .robust_eigenvalues import robust_eigenvalues as robust_eigenvalues
from .schur import (
    SchurParts as SchurParts,
    complex_schur_form as complex_schur_form,
    rotation_block as rotation_block,
    schur_parts as schur_parts,
)
from .spectral_distance import spectral_distance as spectral_distance
