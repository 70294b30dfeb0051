"""Weights kept orthogonal, or kept to a bounded spectrum, on top of torch's own parametrisations."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
