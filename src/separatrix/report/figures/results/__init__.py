"""Figures of whole things: an experiment, a sweep, a diagnosis, and results without a field of their own."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
