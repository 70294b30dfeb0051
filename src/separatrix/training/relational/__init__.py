"""Training relational networks fast on CPUs, and finding out what their accuracy is owed to."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
