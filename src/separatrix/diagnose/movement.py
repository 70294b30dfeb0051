"""How far parameters moved, relative to where they were."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from torch import Tensor


def relative_movement(start: Mapping[str, Tensor], end: Mapping[str, Tensor], names: Iterable[str]) -> float:
    """|end - start| / |start| of the named parameters together, in double precision; infinite for a start at zero.

    Example:
        >>> import torch
        >>> relative_movement({"w": torch.tensor([3.0, 4.0])}, {"w": torch.tensor([3.0, 4.5])}, ["w"])
        0.1
    """
    names = list(names)
    moved = math.sqrt(sum(float((end[name] - start[name]).double().square().sum()) for name in names))
    size = math.sqrt(sum(float(start[name].double().square().sum()) for name in names))
    return moved / size if size > 0 else math.inf if moved > 0 else 0.0
