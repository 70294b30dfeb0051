from .count_equilibria import EquilibriumCount as EquilibriumCount, count_equilibria as count_equilibria
from .krylov import JacobianAt as JacobianAt, ritz_values as ritz_values
from .period_two import PeriodTwo as PeriodTwo, find_period_two as find_period_two
from .solve.anderson import Anderson as Anderson
from .solve.auto import Auto as Auto
from .solve.base import AbstractEquilibriumSolver as AbstractEquilibriumSolver
from .solve.broyden import Broyden as Broyden
from .solve.find import find_equilibrium as find_equilibrium
from .solve.maps import AffineMap as AffineMap
from .solve.newton_krylov import NewtonKrylov as NewtonKrylov, gmres as gmres
from .solve.picard import Picard as Picard
from .solve.solution import EquilibriumSolution as EquilibriumSolution
from .spectral_abscissa import spectral_abscissa as spectral_abscissa
from .spectral_norm import non_normality as non_normality, spectral_norm as spectral_norm
from .spectral_radius import spectral_radius as spectral_radius
