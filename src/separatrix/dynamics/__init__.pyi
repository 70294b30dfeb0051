from .attention import AttentionFlow as AttentionFlow
from .attention_weights import AttentionWeights as AttentionWeights
from .flow import AbstractFlow as AbstractFlow, AbstractSphereFlow as AbstractSphereFlow
from .oja import OjaFlow as OjaFlow
from .sphere import (
    check_tokens as check_tokens,
    chordal_distances as chordal_distances,
    normalise as normalise,
    random_tokens as random_tokens,
    tangent_basis as tangent_basis,
)
