"""What all figures share: style, layout, looks of families and networks, the register of drawings, lint."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
