from .bipartite_weights import (
    BipartiteWeights as BipartiteWeights,
    sinkhorn_weights as sinkhorn_weights,
    softmax_weights as softmax_weights,
    uniform_weights as uniform_weights,
)
from .block_spectrum import BlockSpectrum as BlockSpectrum
from .causal import (
    CausalCount as CausalCount,
    causal_patterns as causal_patterns,
    causal_spectrum as causal_spectrum,
    count_stable_causal as count_stable_causal,
)
from .clusters import cluster_spectrum as cluster_spectrum
from .counting import StableCount as StableCount, count_stable as count_stable, stable_windows as stable_windows
from .cycle import ConsensusCycle as ConsensusCycle, consensus_cycle as consensus_cycle
from .discrete import (
    Multipliers as Multipliers,
    bipartite_layer_multipliers as bipartite_layer_multipliers,
    euler_multipliers as euler_multipliers,
    layer_multipliers as layer_multipliers,
)
from .multihead import (
    OppositeDirection as OppositeDirection,
    balanced_direction as balanced_direction,
    multihead_cluster_spectrum as multihead_cluster_spectrum,
    multihead_consensus_spectrum as multihead_consensus_spectrum,
)
from .oja import (
    oja_bipartite_spectrum as oja_bipartite_spectrum,
    oja_lyapunov as oja_lyapunov,
    oja_lyapunov_rate as oja_lyapunov_rate,
    oja_polygonal_spectrum as oja_polygonal_spectrum,
)
from .spectra import (
    bipartite_spectrum as bipartite_spectrum,
    consensus_spectrum as consensus_spectrum,
    sign_pattern_attention as sign_pattern_attention,
    sign_pattern_spectrum as sign_pattern_spectrum,
    sinkhorn_bipartite_spectrum as sinkhorn_bipartite_spectrum,
)
from .stability import (
    StableWindow as StableWindow,
    critical_beta as critical_beta,
    harmonic_pull as harmonic_pull,
    is_stable as is_stable,
    split_beta as split_beta,
    stable_window as stable_window,
    weights_are_stable as weights_are_stable,
)
from .theorem2 import theorem2_corrected as theorem2_corrected, theorem2_printed as theorem2_printed
