from .backward import (
    AbstractBackward as AbstractBackward,
    AbstractLinearBackward as AbstractLinearBackward,
    Exact as Exact,
    Implicit as Implicit,
    Neumann as Neumann,
    OneStep as OneStep,
    Phantom as Phantom,
    Unrolled as Unrolled,
    backward_methods as backward_methods,
    find_backward as find_backward,
)
from .bounds import (
    bound_frobenius_norm as bound_frobenius_norm,
    bound_row_sums as bound_row_sums,
    bound_spectral_norm as bound_spectral_norm,
)
from .cells import DenseLayers as DenseLayers, ResidualCell as ResidualCell, TanhCell as TanhCell
from .closures import modules_used as modules_used
from .deq import DEQ as DEQ, fixed_point_correction as fixed_point_correction
from .hutchinson import jacobian_penalty as jacobian_penalty
from .models import EquilibriumClassifier as EquilibriumClassifier, EquilibriumLanguageModel as EquilibriumLanguageModel
from .monotone import MonotoneDEQ as MonotoneDEQ
from .transformer_cell import CausalAttention as CausalAttention, TransformerCell as TransformerCell
