from .backward import (
    Exact as Exact,
    Implicit as Implicit,
    Neumann as Neumann,
    OneStep as OneStep,
    Phantom as Phantom,
    Unrolled as Unrolled,
)
from .cells import ResidualCell as ResidualCell, TanhCell as TanhCell
from .deq import DEQ as DEQ
from .dropout import VariationalDropout as VariationalDropout, renew_masks as renew_masks
from .equilibrium_models import (
    EquilibriumClassifier as EquilibriumClassifier,
    EquilibriumLanguageModel as EquilibriumLanguageModel,
)
from .side_by_side import SideBySide as SideBySide
from .transformer_cell import CausalAttention as CausalAttention, TransformerCell as TransformerCell
