from . import ensembles as ensembles, initialisers as initialisers
from .attention_instances import AttentionInstance as AttentionInstance, attention_instance as attention_instance
from .balance import (
    BalanceFit as BalanceFit,
    balance_matrix as balance_matrix,
    fit_balance as fit_balance,
    require_pair as require_pair,
    stack_weights as stack_weights,
)
from .balanced import (
    aligned_balanced_pair as aligned_balanced_pair,
    balanced_factors as balanced_factors,
    balanced_pair as balanced_pair,
    balanced_pair_ as balanced_pair_,
    balanced_singular_values as balanced_singular_values,
    random_rotation as random_rotation,
)
from .delay_lines import delay_line as delay_line, feedback_line as feedback_line
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
from .fisher_memory import FisherMemory as FisherMemory, fisher_memory_curve as fisher_memory_curve
from .initialisers import antisymmetric_ as antisymmetric_, gaussian_ as gaussian_, goe_ as goe_, haar_ as haar_
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
