"""Caches of transformers with bounded memory: eviction policies, bounded attention, the cache for Hugging Face."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
