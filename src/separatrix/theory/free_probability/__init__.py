"""Free probability: laws and transforms, free sums and products, edges, non-normal products.

All functions take and return float64 / complex128 tensors and work on any number of points at once.
"""

from separatrix.core.rooms import open_room

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
