"""What is solved: maps whose evaluations are counted, products with their Jacobians, stacks of states."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
