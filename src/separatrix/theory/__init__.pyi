from . import attention_equilibria as attention_equilibria
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
from .oja import (
    oja_bipartite_spectrum as oja_bipartite_spectrum,
    oja_lyapunov as oja_lyapunov,
    oja_lyapunov_rate as oja_lyapunov_rate,
    oja_polygonal_spectrum as oja_polygonal_spectrum,
)
