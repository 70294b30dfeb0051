"""Learning to act from rewards: proximal policy optimisation of networks with memory."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
