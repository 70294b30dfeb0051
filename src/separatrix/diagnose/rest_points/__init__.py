"""Fixed points of recurrent networks of others: found, certified, followed as the input changes."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
