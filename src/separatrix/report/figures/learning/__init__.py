"""Figures of learning: curves over time, balance and regime, what seeds of different starts reached."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
