from .attention import AttentionFlow as AttentionFlow
from .attention_maps import AttentionMap as AttentionMap, MapRun as MapRun, layer_norm as layer_norm
from .attention_matrices import AttentionMatrices as AttentionMatrices
from .base import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .descent import Descent as Descent
from .layer_trajectory import LayerTrajectory as LayerTrajectory
from .linear_network import LinearNetworkFlow as LinearNetworkFlow, chain_product as chain_product
from .oja import OjaFlow as OjaFlow
from .sphere import (
    check_tokens as check_tokens,
    chordal_distances as chordal_distances,
    normalise as normalise,
    random_tokens as random_tokens,
    tangent_basis as tangent_basis,
)
from .time_varying import (
    LayerRun as LayerRun,
    Layers as Layers,
    follow_weights as follow_weights,
    layers_of as layers_of,
    run_layers as run_layers,
)
