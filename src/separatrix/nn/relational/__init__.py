"""Relational networks: what is seen goes through an encoder, and answers depend on how the encoded objects relate."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
