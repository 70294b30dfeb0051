"""Files as people leave them: written whole or not at all, and places that are seen to be closed before the work."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
