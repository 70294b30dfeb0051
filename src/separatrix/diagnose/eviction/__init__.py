"""Caches that forget, of any model: what they keep, against what the model looks at, and what it costs."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
