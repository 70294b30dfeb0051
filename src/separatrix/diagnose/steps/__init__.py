"""Recurrent layers as maps: state and input to the next state, of torch modules, files and anybody's step."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
