"""Who has converged: the error of a state, a look beyond the equilibrium it claims, outcomes and solutions."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
