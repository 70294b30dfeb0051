"""One step of a recurrent network, and the scan that repeats it: values, derivatives, kernels."""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
