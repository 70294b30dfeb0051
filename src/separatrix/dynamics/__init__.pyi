from .solve.anderson import Anderson as Anderson
from .solve.base import AbstractEquilibriumSolver as AbstractEquilibriumSolver
from .solve.broyden import Broyden as Broyden
from .solve.find import EquilibriumSolution as EquilibriumSolution, find_equilibrium as find_equilibrium
from .solve.newton_krylov import NewtonKrylov as NewtonKrylov, gmres as gmres
from .solve.picard import Picard as Picard
from .spectral_radius import spectral_radius as spectral_radius
