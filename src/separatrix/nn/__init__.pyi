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
from .transformer_cell import CausalAttention as CausalAttention, TransformerCell as TransformerCell
