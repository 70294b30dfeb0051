"""The product of one balanced network at many times, fast: plain arrays, and a hidden basis that fits."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
