"""How numbers are computed: which backend runs an inner loop, and decisions under the transforms of torch.func."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
