"""Balance of layer pairs: profile, conservation, change without changing the function."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
