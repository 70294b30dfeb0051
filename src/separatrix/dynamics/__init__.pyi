from .attention import AttentionFlow as AttentionFlow
from .attention_maps import AttentionMap as AttentionMap, MapRun as MapRun, layer_norm as layer_norm
from .attention_weights import AttentionWeights as AttentionWeights
from .censuses import (
    Census as Census,
    Contradiction as Contradiction,
    InstanceCensus as InstanceCensus,
    census as census,
)
from .classification import Tolerances as Tolerances, classify as classify
from .clusters import Clusters as Clusters, cluster_flow as cluster_flow, find_clusters as find_clusters
from .continuation import (
    Branch as Branch,
    Event as Event,
    beta_branch as beta_branch,
    follow as follow,
    fraction_branch as fraction_branch,
)
from .equilibrium import KINDS as KINDS, Equilibrium as Equilibrium
from .equilibrium_search import find_equilibria as find_equilibria, partitions as partitions
from .flow import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .integration import integrate as integrate
from .limit_cycles import LimitCycle as LimitCycle, find_periods as find_periods, limit_cycle as limit_cycle
from .metastability import (
    Metastability as Metastability,
    Plateau as Plateau,
    metastability_record as metastability_record,
)
from .oja import OjaFlow as OjaFlow
from .polishing import Polished as Polished, polish as polish
from .polygonal import (
    PolygonalSearch as PolygonalSearch,
    centred_tokens as centred_tokens,
    find_polygonal as find_polygonal,
)
from .proportions import (
    equal_proportions_p as equal_proportions_p,
    unseen_mass as unseen_mass,
    wilson_interval as wilson_interval,
)
from .sphere import (
    check_tokens as check_tokens,
    chordal_distances as chordal_distances,
    normalise as normalise,
    random_tokens as random_tokens,
    tangent_basis as tangent_basis,
)
from .stability import ClusterStability as ClusterStability, cluster_stability as cluster_stability
from .time_varying import (
    LayerRun as LayerRun,
    Layers as Layers,
    follow_weights as follow_weights,
    layers_of as layers_of,
    run_layers as run_layers,
)
from .trajectory import Trajectory as Trajectory
from .variational import flow_map as flow_map, lyapunov_exponents as lyapunov_exponents
