"""Closed forms of memory in linear recurrent networks."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
