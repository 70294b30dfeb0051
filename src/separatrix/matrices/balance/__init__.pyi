from .measure import (
    BalanceFit as BalanceFit,
    balance_matrix as balance_matrix,
    fit_balance as fit_balance,
    require_pair as require_pair,
    stack_weights as stack_weights,
)
from .pairs import (
    aligned_balanced_pair as aligned_balanced_pair,
    balanced_factors as balanced_factors,
    balanced_pair as balanced_pair,
    balanced_pair_ as balanced_pair_,
    balanced_singular_values as balanced_singular_values,
    random_rotation as random_rotation,
)
