from .solve.anderson import Anderson as Anderson
from .solve.auto import Auto as Auto
from .solve.base import AbstractEquilibriumSolver as AbstractEquilibriumSolver
from .solve.broyden import Broyden as Broyden
from .solve.find import find_equilibrium as find_equilibrium
from .solve.maps import AffineMap as AffineMap
from .solve.newton_krylov import NewtonKrylov as NewtonKrylov, gmres as gmres
from .solve.picard import Picard as Picard
from .solve.solution import EquilibriumSolution as EquilibriumSolution
from .spectral_radius import spectral_radius as spectral_radius
