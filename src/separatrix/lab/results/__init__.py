"""Published results: one file per experiment, how verdicts changed, and how others check them."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
