from .attention import AttentionFlow as AttentionFlow
from .attention_weights import AttentionWeights as AttentionWeights
from .classification import Tolerances as Tolerances, classify as classify
from .clusters import Clusters as Clusters, cluster_flow as cluster_flow, find_clusters as find_clusters
from .equilibrium import KINDS as KINDS, Equilibrium as Equilibrium
from .flow import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .integration import integrate as integrate
from .limit_cycles import LimitCycle as LimitCycle, find_periods as find_periods, limit_cycle as limit_cycle
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
from .variational import flow_map as flow_map, lyapunov_exponents as lyapunov_exponents
