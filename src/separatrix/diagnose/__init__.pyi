from .balance import (
    BalanceProfile as BalanceProfile,
    PairBalance as PairBalance,
    balance_profile as balance_profile,
)
from .conservation import (
    ConservationCheck as ConservationCheck,
    PairConservation as PairConservation,
    conservation_check as conservation_check,
)
from .laws import Law as Law, LayerPair as LayerPair
from .layer_pairs import PairSearch as PairSearch, SkippedLayer as SkippedLayer, find_pairs as find_pairs
from .optimiser_law import Keeps as Keeps, OptimiserLaw as OptimiserLaw, optimiser_law as optimiser_law
