from .attention import AttentionFlow as AttentionFlow
from .attention_maps import AttentionMap as AttentionMap, MapRun as MapRun, layer_norm as layer_norm
from .attention_matrices import AttentionMatrices as AttentionMatrices
from .base import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .descent import Descent as Descent
from .layers import LayerTrajectory as LayerTrajectory, chain_product as chain_product
from .linear_network import LinearNetworkFlow as LinearNetworkFlow
from .normalisation import (
    AbstractNormalisation as AbstractNormalisation,
    Sinkhorn as Sinkhorn,
    Softmax as Softmax,
    Uniform as Uniform,
)
from .oja import OjaFlow as OjaFlow
from .sphere import (
    check_tokens as check_tokens,
    chordal_distances as chordal_distances,
    normalise as normalise,
    random_tokens as random_tokens,
    tangent_basis as tangent_basis,
)
from .time_varying import TimeVaryingFlow as TimeVaryingFlow
from .variational import VariationalFlow as VariationalFlow
