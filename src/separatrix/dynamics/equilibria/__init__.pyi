from .clusters import Clusters as Clusters, cluster_flow as cluster_flow, find_clusters as find_clusters
from .continuation import (
    Branch as Branch,
    Event as Event,
    beta_branch as beta_branch,
    follow as follow,
    fraction_branch as fraction_branch,
)
from .equilibrium import KINDS as KINDS, Equilibrium as Equilibrium
from .polishing import Polished as Polished, polish as polish
from .polygonal import (
    PolygonalSearch as PolygonalSearch,
    centred_tokens as centred_tokens,
    find_polygonal as find_polygonal,
)
from .stability import ClusterStability as ClusterStability, cluster_stability as cluster_stability
