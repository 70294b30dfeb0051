"""Recurrent networks that attend to their own past, and what they keep of it: relevancy screening and its kin."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
