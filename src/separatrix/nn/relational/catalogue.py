"""Every relational network by name."""

from __future__ import annotations

from typing import Any

from separatrix.core.names import resolve

from .attention import Abstractor, DualAttention, RelationalTransformer
from .corelnet import CoRelNet, CoRelNetT
from .esbn import ESBN
from .mnm import MNM
from .network import AbstractRelationalNetwork
from .pairs import PrediNet, RelationNet
from .recurrent_readers import NTM, RelationalLSTM
from .relconv import RelConvNet
from .rule_networks import CoRelNetDiff, CoRelNetMix

RELATIONAL_NETWORKS: dict[str, type[AbstractRelationalNetwork]] = {
    "CoRelNet": CoRelNet,
    "CoRelNet-T": CoRelNetT,
    "ESBN": ESBN,
    "PrediNet": PrediNet,
    "Transformer": RelationalTransformer,
    "RN": RelationNet,
    "LSTM": RelationalLSTM,
    "NTM": NTM,
    "MNM": MNM,
    "CoRelNet-diff": CoRelNetDiff,
    "CoRelNet-mix": CoRelNetMix,
    "Abstractor": Abstractor,
    "RelConvNet": RelConvNet,
    "DualAttention": DualAttention,
}
"""Names as figures and tables show them."""

MATCHED_HIDDEN = {
    "same_diff": 285_313,
    "rmts": 71_328,
    "same_diff6": 71_328,
    "dist3": 34_258,
    "identity_rules": 34_258,
    "rmts3": 35_664,
    "identity_rules4": 17_489,
    "identity_rules4_missing": 17_489,
}
"""Hidden units of CoRelNet-nhid, which has as many parameters as ESBN, by task."""


def make_network(name: str, seq_len: int, n_answers: int, **options: Any) -> AbstractRelationalNetwork:
    """A relational network by name; options are those of its class.

    Example:
        >>> type(make_network("CoRelNet-T", 9, 4)).__name__
        'CoRelNetT'
    """
    kind: Any = resolve("relational network", name, RELATIONAL_NETWORKS)
    network: AbstractRelationalNetwork = kind(seq_len, n_answers, **options)
    return network
