"""What can move: the interface of a flow, the sphere, attention, Oja, linear networks, weights that vary in time."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
