"""Free probability: laws and transforms, free sums and products, edges, non-normal products.

All functions take and return float64 / complex128 tensors and work on any number of points at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
