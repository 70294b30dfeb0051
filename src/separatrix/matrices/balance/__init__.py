"""Balanced pairs of layers, and how balanced a pair is."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
