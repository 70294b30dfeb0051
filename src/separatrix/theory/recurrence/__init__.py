"""Closed forms of linear recurrent networks: memory, powers."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
