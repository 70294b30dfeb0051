"""Sequences to remember: tasks made in code, and real data read step by step."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
