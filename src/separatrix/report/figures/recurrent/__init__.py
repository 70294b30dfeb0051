"""Figures of recurrent networks: fixed points, training, memory, attentive networks."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
