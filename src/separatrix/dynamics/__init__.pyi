from .attention import AttentionFlow as AttentionFlow
from .attention_weights import AttentionWeights as AttentionWeights
from .clusters import Clusters as Clusters, cluster_flow as cluster_flow, find_clusters as find_clusters
from .flow import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .integration import integrate as integrate
from .oja import OjaFlow as OjaFlow
from .polishing import Polished as Polished, polish as polish
from .sphere import (
    check_tokens as check_tokens,
    chordal_distances as chordal_distances,
    normalise as normalise,
    random_tokens as random_tokens,
    tangent_basis as tangent_basis,
)
from .stability import ClusterStability as ClusterStability, cluster_stability as cluster_stability
from .trajectory import Trajectory as Trajectory
