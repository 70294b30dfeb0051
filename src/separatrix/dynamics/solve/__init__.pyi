from .convergence import *
from .find import find_equilibrium as find_equilibrium
from .maps import *
from .methods import *
from .multistart import EquilibriumCount as EquilibriumCount, count_equilibria as count_equilibria
from .random_networks import network_equilibria as network_equilibria, network_radius as network_radius
