from .attention import (
    Abstractor as Abstractor,
    DualAttention as DualAttention,
    RelationalTransformer as RelationalTransformer,
)
from .catalogue import (
    MATCHED_HIDDEN as MATCHED_HIDDEN,
    RELATIONAL_NETWORKS as RELATIONAL_NETWORKS,
    make_network as make_network,
)
from .context_norm import ContextNorm as ContextNorm, temporal_context_norm as temporal_context_norm
from .corelnet import CoRelNet as CoRelNet, CoRelNetT as CoRelNetT
from .encoder import GlyphEncoder as GlyphEncoder
from .esbn import ESBN as ESBN
from .mnm import MNM as MNM
from .network import AbstractRelationalNetwork as AbstractRelationalNetwork
from .pairs import PrediNet as PrediNet, RelationNet as RelationNet
from .recurrent_readers import NTM as NTM, RelationalLSTM as RelationalLSTM
from .relconv import RelConvNet as RelConvNet
from .rule_networks import CoRelNetDiff as CoRelNetDiff, CoRelNetMix as CoRelNetMix
