"""Trajectories of plain self-attention in one compiled loop: when it is used, how it is called, its kernels."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
