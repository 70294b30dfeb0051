"""Attention layers of real models: what their weights and tokens say of the dynamics."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
