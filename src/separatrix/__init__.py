"""Separatrix: networks that are dynamical systems, simulated, predicted, compared, trained and diagnosed.

Rooms are resolved on first use, so importing the package does not import torch.
"""

import importlib
from typing import Any

from separatrix.core.result import paint_with
from separatrix.core.rooms import open_room

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = open_room(__name__, __file__)


def _draw_small(result: Any) -> str:
    """Only when a notebook shows a result is the room that draws imported; by its name, for no room may know it."""
    return str(importlib.import_module("separatrix.report.figures.plots").small_svg(result))


paint_with(_draw_small)
