"""Environments to act in, each with gymnasium's interface: a corridor of our own, and MiniGrid."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
