"""One equilibrium: finding it beside a state, its clusters, its stability, following it along a parameter."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
