"""Rich or lazy: what training did to kernel, features and layers, and which start leads to which."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
