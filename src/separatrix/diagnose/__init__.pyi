from .attention_alignment import (
    Alignment as Alignment,
    Null as Null,
    alignments as alignments,
    dominant_subspace as dominant_subspace,
)
from .attention_dynamics import (
    AttentionDiagnosis as AttentionDiagnosis,
    LayerDiagnosis as LayerDiagnosis,
    attention_dynamics as attention_dynamics,
)
from .attention_sources import AttentionLayers as AttentionLayers, attention_layers as attention_layers
from .attention_spectra import (
    HeadPrediction as HeadPrediction,
    LayerSpectrum as LayerSpectrum,
    head_predictions as head_predictions,
    value_spectra as value_spectra,
)
from .attention_weights import AttentionLayer as AttentionLayer, Normaliser as Normaliser
from .balance import BalanceProfile as BalanceProfile, PairBalance as PairBalance, balance_profile as balance_profile
from .comparison import RegimeComparison as RegimeComparison, compare_regimes as compare_regimes
from .conservation import (
    ConservationCheck as ConservationCheck,
    PairConservation as PairConservation,
    conservation_check as conservation_check,
)
from .equal_loss import (
    EqualLossRun as EqualLossRun,
    pick_at_loss as pick_at_loss,
    stable_lr as stable_lr,
    train_to_loss as train_to_loss,
)
from .frozen_flow import FrozenEnd as FrozenEnd, frozen_flow as frozen_flow
from .kernel import (
    TangentKernel as TangentKernel,
    kernel_distance as kernel_distance,
    label_alignment as label_alignment,
    relative_change as relative_change,
    tangent_kernel as tangent_kernel,
)
from .linearised import LinearisedPrediction as LinearisedPrediction, linearised_prediction as linearised_prediction
from .optimiser_law import Keeps as Keeps, OptimiserLaw as OptimiserLaw, optimiser_law as optimiser_law
from .pairs.laws import Law as Law, LayerPair as LayerPair
from .pairs.search import PairSearch as PairSearch, SkippedLayer as SkippedLayer, find_pairs as find_pairs
from .rebalance import BalanceReport as BalanceReport, set_balance as set_balance
from .recommend import InitAdvice as InitAdvice, recommend_init as recommend_init
from .regime import RichLazy as RichLazy, rich_lazy as rich_lazy
from .similarity import linear_cka as linear_cka
from .token_geometry import Interval as Interval, TokenGeometry as TokenGeometry, token_geometry as token_geometry
