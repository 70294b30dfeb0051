from .aligned_modes import (
    aligned_mode as aligned_mode,
    aligned_sides as aligned_sides,
    aligned_strength as aligned_strength,
    deep_time_to_reach as deep_time_to_reach,
    shallow_product as shallow_product,
    time_to_reach as time_to_reach,
    zero_balanced_strength as zero_balanced_strength,
)
from .balanced_flow import BalancedFlow as BalancedFlow
from .equal_size_formula import equal_size_gram as equal_size_gram, equal_size_parts as equal_size_parts
from .forgetting import (
    TaskSequence as TaskSequence,
    converged_forgetting as converged_forgetting,
    loss_rate as loss_rate,
    task_loss as task_loss,
)
from .kernel import (
    kernel_change as kernel_change,
    lazy_ntk_change as lazy_ntk_change,
    ntk_distance as ntk_distance,
    ntk_inner as ntk_inner,
    representation_spectra as representation_spectra,
    representational_similarity as representational_similarity,
    square_representations as square_representations,
    task_specific_score as task_specific_score,
    two_layer_ntk as two_layer_ntk,
)
from .random_balance import (
    RandomBalance as RandomBalance,
    glorot_limits as glorot_limits,
    layer_variances as layer_variances,
    random_balance as random_balance,
    wide_balance as wide_balance,
)
from .regime import (
    Regime as Regime,
    RegimeMap as RegimeMap,
    classify_regime as classify_regime,
    lazy_product as lazy_product,
    plateau_loss as plateau_loss,
)
from .stopping import StoppingTime as StoppingTime, best_stopping_time as best_stopping_time
from .white_inputs import (
    NotWhite as NotWhite,
    NotWhiteWarning as NotWhiteWarning,
    Whiteness as Whiteness,
    input_whiteness as input_whiteness,
    whiten as whiten,
)
