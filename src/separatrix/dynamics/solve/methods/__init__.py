"""How the next point is proposed: the interface of a method, five methods, and how one is found by its name."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
