"""Relational tasks: problems whose answer depends on which objects are equal, not on what they are."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
