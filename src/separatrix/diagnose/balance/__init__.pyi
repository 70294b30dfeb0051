from .conservation import (
    ConservationCheck as ConservationCheck,
    PairConservation as PairConservation,
    conservation_check as conservation_check,
)
from .exact_moves import rotate_pair as rotate_pair, unit_factors as unit_factors
from .optimiser_law import Keeps as Keeps, OptimiserLaw as OptimiserLaw, optimiser_law as optimiser_law
from .pairs import *
from .profile import BalanceProfile as BalanceProfile, PairBalance as PairBalance, balance_profile as balance_profile
from .rebalance import BalanceReport as BalanceReport, set_balance as set_balance
