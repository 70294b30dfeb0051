from .balance import (
    BalanceProfile as BalanceProfile,
    PairBalance as PairBalance,
    balance_profile as balance_profile,
)
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
from .kernel import (
    TangentKernel as TangentKernel,
    kernel_distance as kernel_distance,
    label_alignment as label_alignment,
    relative_change as relative_change,
    tangent_kernel as tangent_kernel,
)
from .linearised import (
    LinearisedPrediction as LinearisedPrediction,
    linearised_prediction as linearised_prediction,
)
from .optimiser_law import Keeps as Keeps, OptimiserLaw as OptimiserLaw, optimiser_law as optimiser_law
from .pairs.laws import Law as Law, LayerPair as LayerPair
from .pairs.search import PairSearch as PairSearch, SkippedLayer as SkippedLayer, find_pairs as find_pairs
from .rebalance import BalanceReport as BalanceReport, set_balance as set_balance
from .recommend import InitAdvice as InitAdvice, recommend_init as recommend_init
from .regime import RichLazy as RichLazy, rich_lazy as rich_lazy
from .similarity import linear_cka as linear_cka
