"""One-dimensional searches for a whole batch at once, without derivatives."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

_GRID = 33


def minimum(
    function: Callable[[Tensor], Tensor], low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"], zooms: int = 11
) -> Float[Tensor, "*batch"]:
    """The least value of functions with one valley on [low, high] (at an end if the valley is there).

    ``function`` takes points of shape (*batch, grid). Each zoom narrows the interval 16 times, so the least value is
    exact to rounding.
    """
    fraction = torch.linspace(0, 1, _GRID, dtype=torch.float64)
    best = torch.full_like(low, torch.inf)
    for _ in range(zooms):
        grid = low[..., None] + (high - low)[..., None] * fraction
        values = function(grid)
        least, index = values.min(-1, keepdim=True)
        best = torch.minimum(best, least[..., 0])
        low = grid.gather(-1, (index - 1).clamp_min(0))[..., 0]
        high = grid.gather(-1, (index + 1).clamp_max(_GRID - 1))[..., 0]
    return best


def root_of_decreasing(
    function: Callable[[Tensor], Tensor], low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """The point where decreasing functions change sign on [low, high], by bisection; an end if they do not."""
    for _ in range(200):
        middle = (low + high) / 2
        positive = ~(function(middle) <= 0)  # a pole evaluated exactly gives NaN, and lies on the positive side
        low, high = torch.where(positive, middle, low), torch.where(positive, high, middle)
        if not bool((high - low > 1e-15 * (1 + high.abs())).any()):
            break
    return (low + high) / 2
