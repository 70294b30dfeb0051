"""The numbered items of each document: what it states, in our own words, and which claims judge that."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
