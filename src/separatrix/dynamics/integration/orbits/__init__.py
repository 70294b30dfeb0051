"""Closed orbits: recognising a return, closing the orbit by Newton's method, and its Floquet multipliers."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
