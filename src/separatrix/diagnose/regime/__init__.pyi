from .comparison import RegimeComparison as RegimeComparison, compare_regimes as compare_regimes
from .curve import RegimeBand as RegimeBand, RegimeCurve as RegimeCurve, regime_curve as regime_curve
from .equal_loss import (
    EqualLossRun as EqualLossRun,
    pick_at_loss as pick_at_loss,
    stable_lr as stable_lr,
    train_to_loss as train_to_loss,
)
from .kernel import (
    TangentKernel as TangentKernel,
    full_change as full_change,
    full_distance as full_distance,
    kernel_distance as kernel_distance,
    label_alignment as label_alignment,
    relative_change as relative_change,
    tangent_kernel as tangent_kernel,
)
from .linearised import LinearisedPrediction as LinearisedPrediction, linearised_prediction as linearised_prediction
from .measures import RegimePoint as RegimePoint
from .recommend import InitAdvice as InitAdvice, recommend_init as recommend_init
from .rich_lazy import RichLazy as RichLazy, rich_lazy as rich_lazy
from .similarity import linear_cka as linear_cka
