from .anderson import Anderson as Anderson
from .auto import Auto as Auto
from .base import AbstractEquilibriumSolver as AbstractEquilibriumSolver
from .broyden import Broyden as Broyden
from .find import find_equilibrium as find_equilibrium
from .maps import AffineMap as AffineMap, CountedMap as CountedMap
from .multistart import EquilibriumCount as EquilibriumCount, count_equilibria as count_equilibria
from .named import find_solver as find_solver, solvers as solvers
from .newton_krylov import NewtonKrylov as NewtonKrylov, gmres as gmres
from .picard import Picard as Picard
from .products import jacobian_product as jacobian_product, transposed_product as transposed_product
from .random_networks import network_equilibria as network_equilibria, network_radius as network_radius
from .solution import EquilibriumSolution as EquilibriumSolution
