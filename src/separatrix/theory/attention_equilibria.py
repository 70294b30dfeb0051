"""Equilibria of the self-attention flow and their exact stability, under one name.

The parts live in files of their own: spectra, stability, counting, clusters, causal order, heads, maps, cycles.
"""

from __future__ import annotations

from .attention_causal import CausalCount, causal_patterns, causal_spectrum, count_stable_causal
from .attention_clusters import cluster_spectrum
from .attention_counting import StableCount, count_stable, stable_windows
from .attention_cycle import ConsensusCycle, consensus_cycle
from .attention_discrete import Multipliers, bipartite_layer_multipliers, euler_multipliers, layer_multipliers
from .attention_multihead import balanced_direction, multihead_cluster_spectrum, multihead_consensus_spectrum
from .attention_spectra import (
    bipartite_spectrum,
    consensus_spectrum,
    sign_pattern_attention,
    sign_pattern_spectrum,
    sinkhorn_bipartite_spectrum,
)
from .attention_spectrum import BlockSpectrum
from .attention_stability import (
    StableWindow,
    critical_beta,
    harmonic_pull,
    is_stable,
    stable_window,
    weights_are_stable,
)
from .attention_weights import BipartiteWeights, sinkhorn_weights, softmax_weights, uniform_weights

__all__ = [
    "BipartiteWeights",
    "BlockSpectrum",
    "CausalCount",
    "ConsensusCycle",
    "Multipliers",
    "StableCount",
    "StableWindow",
    "balanced_direction",
    "bipartite_layer_multipliers",
    "bipartite_spectrum",
    "causal_patterns",
    "causal_spectrum",
    "cluster_spectrum",
    "consensus_cycle",
    "consensus_spectrum",
    "count_stable",
    "count_stable_causal",
    "critical_beta",
    "euler_multipliers",
    "harmonic_pull",
    "is_stable",
    "layer_multipliers",
    "multihead_cluster_spectrum",
    "multihead_consensus_spectrum",
    "sign_pattern_attention",
    "sign_pattern_spectrum",
    "sinkhorn_bipartite_spectrum",
    "sinkhorn_weights",
    "softmax_weights",
    "stable_window",
    "stable_windows",
    "uniform_weights",
    "weights_are_stable",
]
