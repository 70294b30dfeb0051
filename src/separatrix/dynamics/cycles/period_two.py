"""Does an iteration end in an alternation between two points?"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result
from separatrix.core.scalars import in_words

from ..solve.maps.counted import FixedPointMap


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PeriodTwo(Result):
    """Where an iteration stands after many steps, per sample."""

    alternates: Bool[Tensor, " *batch"]
    """True where f(f(z)) returns to z and f(z) does not: damping will help."""
    step: Float[Tensor, " *batch"]
    """|f(z) - z| / |f(z)|."""
    double_step: Float[Tensor, " *batch"]
    """|f(f(z)) - z| / |f(z)|."""


def find_period_two(
    fixed_point_map: FixedPointMap,
    z0: Float[Tensor, "*batch d"],
    *,
    steps: int = 200,
    ratio: float = 1e-2,
) -> PeriodTwo:
    """Iterate, then compare one step with two.

    A sample alternates if two steps bring it back ``ratio`` times closer than one step takes it away, and one step
    moves it by more than rounding.

    Args:
        fixed_point_map: the map; rows must not depend on each other.
        z0: starts ``(..., d)``.
        steps: evaluations before the comparison, which costs two more.
        ratio: largest |f(f(z)) - z| / |f(z) - z| that counts as coming back.

    Example:
        >>> find_period_two(lambda z: -1.5 * torch.tanh(z), torch.full((1, 1), 0.3)).alternates.tolist()
        [True]
    """
    require_integer(steps, "steps", at_least=1)
    require_positive(ratio, "ratio")
    with torch.no_grad():
        z = z0
        for _ in range(steps):
            z = fixed_point_map(z)
        once = fixed_point_map(z)
        twice = fixed_point_map(once)
    if not isinstance(twice, Tensor) or twice.shape != z0.shape:
        raise InvalidInput(f"fixed_point_map must return a tensor of shape {tuple(z0.shape)}; got {in_words(twice)}.")
    scale = torch.linalg.vector_norm(once, dim=-1).clamp_min(torch.finfo(z.dtype).tiny)
    step = torch.linalg.vector_norm(once - z, dim=-1) / scale
    double_step = torch.linalg.vector_norm(twice - z, dim=-1) / scale
    moves = step > 1e3 * torch.finfo(z.dtype).eps
    return PeriodTwo(moves & (double_step <= ratio * step), step, double_step)
