"""Separatrix: networks that are dynamical systems, simulated, predicted, compared, trained and diagnosed.

Rooms are resolved on first use, so importing the package does not import torch.
"""

from separatrix.core.rooms import open_room

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = open_room(__name__, __file__)
