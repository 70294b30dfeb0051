from . import (
    attention_equilibria as attention_equilibria,
    deq_kernels as deq_kernels,
    free_probability as free_probability,
    linear_deq as linear_deq,
    nonlinear_deq as nonlinear_deq,
)
from .activations import ACTIVATIONS as ACTIVATIONS, Activation as Activation, find_activation as find_activation
from .aligned_modes import (
    aligned_mode as aligned_mode,
    aligned_sides as aligned_sides,
    aligned_strength as aligned_strength,
    deep_time_to_reach as deep_time_to_reach,
    shallow_product as shallow_product,
    time_to_reach as time_to_reach,
    zero_balanced_strength as zero_balanced_strength,
)
from .attention_causal import (
    CausalCount as CausalCount,
    causal_patterns as causal_patterns,
    causal_spectrum as causal_spectrum,
    count_stable_causal as count_stable_causal,
)
from .attention_clusters import cluster_spectrum as cluster_spectrum
from .attention_counting import (
    StableCount as StableCount,
    count_stable as count_stable,
    stable_windows as stable_windows,
)
from .attention_cycle import ConsensusCycle as ConsensusCycle, consensus_cycle as consensus_cycle
from .attention_discrete import (
    Multipliers as Multipliers,
    bipartite_layer_multipliers as bipartite_layer_multipliers,
    euler_multipliers as euler_multipliers,
    layer_multipliers as layer_multipliers,
)
from .attention_multihead import (
    OppositeDirection as OppositeDirection,
    balanced_direction as balanced_direction,
    multihead_cluster_spectrum as multihead_cluster_spectrum,
    multihead_consensus_spectrum as multihead_consensus_spectrum,
)
from .attention_spectra import (
    bipartite_spectrum as bipartite_spectrum,
    consensus_spectrum as consensus_spectrum,
    sign_pattern_attention as sign_pattern_attention,
    sign_pattern_spectrum as sign_pattern_spectrum,
    sinkhorn_bipartite_spectrum as sinkhorn_bipartite_spectrum,
)
from .attention_spectrum import BlockSpectrum as BlockSpectrum
from .attention_stability import (
    StableWindow as StableWindow,
    critical_beta as critical_beta,
    harmonic_pull as harmonic_pull,
    is_stable as is_stable,
    stable_window as stable_window,
    weights_are_stable as weights_are_stable,
)
from .attention_theorem2 import theorem2_corrected as theorem2_corrected, theorem2_printed as theorem2_printed
from .attention_weights import (
    BipartiteWeights as BipartiteWeights,
    sinkhorn_weights as sinkhorn_weights,
    softmax_weights as softmax_weights,
    uniform_weights as uniform_weights,
)
from .balanced_flow import BalancedFlow as BalancedFlow
from .deq_kernels import Kernels as Kernels, kernels as kernels
from .equal_size_formula import equal_size_gram as equal_size_gram, equal_size_parts as equal_size_parts
from .fisher_memory import (
    amplification_bound as amplification_bound,
    delay_line_memory as delay_line_memory,
    delay_line_total as delay_line_total,
    delay_line_total_leading as delay_line_total_leading,
    feedback_line_radius as feedback_line_radius,
    memory_ceiling as memory_ceiling,
    normal_memory as normal_memory,
    normal_memory_total as normal_memory_total,
    sharp_triangular_memory_bound as sharp_triangular_memory_bound,
    triangular_memory_bound as triangular_memory_bound,
)
from .forgetting import (
    TaskSequence as TaskSequence,
    converged_forgetting as converged_forgetting,
    loss_rate as loss_rate,
    task_loss as task_loss,
)
from .learning_regime import (
    Regime as Regime,
    RegimeMap as RegimeMap,
    classify_regime as classify_regime,
    lazy_product as lazy_product,
    plateau_loss as plateau_loss,
)
from .linear_deq import (
    divergence_exponent as divergence_exponent,
    length_variance as length_variance,
    mean_response as mean_response,
    resolvent_moment as resolvent_moment,
)
from .linear_kernel import (
    kernel_change as kernel_change,
    kernel_distance as kernel_distance,
    lazy_ntk_change as lazy_ntk_change,
    ntk_inner as ntk_inner,
    representation_spectra as representation_spectra,
    representational_similarity as representational_similarity,
    square_representations as square_representations,
    task_specific_score as task_specific_score,
    two_layer_ntk as two_layer_ntk,
)
from .nonlinear_deq import MeanField as MeanField, mean_field as mean_field
from .oja import (
    oja_bipartite_spectrum as oja_bipartite_spectrum,
    oja_lyapunov as oja_lyapunov,
    oja_lyapunov_rate as oja_lyapunov_rate,
    oja_polygonal_spectrum as oja_polygonal_spectrum,
)
from .random_balance import (
    RandomBalance as RandomBalance,
    glorot_limits as glorot_limits,
    layer_variances as layer_variances,
    random_balance as random_balance,
    wide_balance as wide_balance,
)
from .stopping import StoppingTime as StoppingTime, best_stopping_time as best_stopping_time
