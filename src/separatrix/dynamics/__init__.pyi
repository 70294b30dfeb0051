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
from .count_equilibria import EquilibriumCount as EquilibriumCount, count_equilibria as count_equilibria
from .equilibrium import KINDS as KINDS, Equilibrium as Equilibrium
from .equilibrium_search import find_equilibria as find_equilibria, partitions as partitions
from .flow import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .integration import integrate as integrate
from .krylov import JacobianAt as JacobianAt, ritz_values as ritz_values
from .layer_descent import Descent as Descent
from .layer_trajectory import LayerTrajectory as LayerTrajectory
from .limit_cycles import LimitCycle as LimitCycle, find_periods as find_periods, limit_cycle as limit_cycle
from .linear_network import LinearNetworkFlow as LinearNetworkFlow, chain_product as chain_product
from .metastability import (
    Metastability as Metastability,
    Plateau as Plateau,
    metastability_record as metastability_record,
)
from .oja import OjaFlow as OjaFlow
from .period_two import PeriodTwo as PeriodTwo, find_period_two as find_period_two
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
from .solve.anderson import Anderson as Anderson
from .solve.auto import Auto as Auto
from .solve.base import AbstractEquilibriumSolver as AbstractEquilibriumSolver
from .solve.broyden import Broyden as Broyden
from .solve.find import find_equilibrium as find_equilibrium
from .solve.maps import AffineMap as AffineMap
from .solve.newton_krylov import NewtonKrylov as NewtonKrylov, gmres as gmres
from .solve.picard import Picard as Picard
from .solve.solution import EquilibriumSolution as EquilibriumSolution
from .spectral_abscissa import spectral_abscissa as spectral_abscissa
from .spectral_norm import non_normality as non_normality, spectral_norm as spectral_norm
from .spectral_radius import spectral_radius as spectral_radius
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
