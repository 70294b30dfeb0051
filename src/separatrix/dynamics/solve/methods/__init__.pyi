from .anderson import Anderson as Anderson
from .auto import Auto as Auto
from .base import AbstractEquilibriumSolver as AbstractEquilibriumSolver
from .broyden import Broyden as Broyden
from .named import find_solver as find_solver, solvers as solvers
from .newton_krylov import NewtonKrylov as NewtonKrylov, gmres as gmres
from .picard import Picard as Picard
