"""Fixed points of maps: what is solved, methods, the judgement of convergence."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
