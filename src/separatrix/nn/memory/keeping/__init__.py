"""What is worth keeping when a state leaves the short buffer: screening policies, and how well they chose."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
