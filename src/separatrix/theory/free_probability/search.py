"""One-dimensional searches for a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

_GRID = 33

_ROUNDING = 4e-16
"""Two spacings of float64 numbers, relative."""

_NOISE = 1e-8
"""After a Newton step below this, the next one that is not half of it shows rounding and nothing else."""


def minimum(
    function: Callable[[Tensor], Tensor], low: Float[Tensor, "*batch"], high: Float[Tensor, "*batch"], zooms: int = 11
) -> Float[Tensor, "*batch"]:
    """The least value of functions with one valley on [low, high] (at an end if the valley is there).

    ``function`` takes points of shape (*batch, grid). Each zoom narrows the interval 16 times, so the least value is
    exact to rounding; it ends early where the neighbours of the least value are no higher than rounding.
    """
    fraction = torch.linspace(0, 1, _GRID, dtype=torch.float64)
    best = torch.full_like(low, torch.inf)
    for _ in range(zooms):
        grid = low[..., None] + (high - low)[..., None] * fraction
        values = function(grid)
        least, index = values.min(-1, keepdim=True)
        best = torch.minimum(best, least[..., 0])
        ends = torch.cat([(index - 1).clamp_min(0), (index + 1).clamp_max(_GRID - 1)], -1)
        if bool((values.gather(-1, ends) - least <= _ROUNDING * least.abs()).all()):
            break
        low, high = grid.gather(-1, ends).unbind(-1)
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


def distance_at_level(
    function: Callable[[Tensor], tuple[Tensor, Tensor]],
    level: Float[Tensor, "*batch"],
    nearest: Float[Tensor, "*batch"],
    farthest: Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """The distance in [nearest, farthest] at which decreasing functions take a positive level; NaN if they do not.

    By Newton's method for the logarithm of the function over that of the distance: transforms are powers of the
    distance both close to the support and far from it, straight lines in these coordinates. A step that leaves the
    bracket, or is not half its predecessor, is replaced by a bisection.

    Args:
        function: positive distances to the values there and to their derivatives.
        level: the value that is looked for.
        nearest: smallest distance, positive; distances that differ by less are the same point.
        farthest: largest distance.

    Cost: 5 to 10 evaluations, where bisection to rounding takes 60.
    """
    low, high = nearest.log(), farthest.log()
    exists = ~(function(nearest)[0] < level) & (function(farthest)[0] <= level)
    at, target, done = high, level.log(), ~exists
    last, was_newton = high - low, torch.zeros_like(exists)
    for _ in range(200):
        value, slope = function(at.exp())
        above = ~(value <= level)  # a pole evaluated exactly gives NaN, and lies on the upper side
        low, high = torch.where(above, at, low), torch.where(above, high, at)
        newton = (target - value.log()) * value / (slope * at.exp())
        shorter = 2 * newton.abs() <= last.abs()
        useful = shorter & (at + newton > low) & (at + newton < high)
        step = torch.where(useful, newton, (low + high) / 2 - at)
        rounding = _ROUNDING * (1 + at.abs()) + nearest / at.exp()
        done = done | (newton.abs() <= rounding) | (was_newton & (last.abs() < _NOISE) & ~useful)
        at, last, was_newton = torch.where(done, at, at + step), step, useful
        done = done | (step.abs() <= rounding)
        if bool(done.all()):
            break
    return torch.where(exists, at.exp(), torch.nan)
