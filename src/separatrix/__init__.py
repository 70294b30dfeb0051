"""Separatrix: networks that are dynamical systems, simulated, predicted, compared, trained and diagnosed.

Rooms are resolved on first use, so importing the package does not import torch.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
