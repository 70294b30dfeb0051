"""Figures of self-attention: what is stable, how tokens move, what layers with real weights do."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
