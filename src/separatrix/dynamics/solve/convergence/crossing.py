"""Is there an equilibrium where the estimate of the error says that one is? One look beyond it tells.

The estimate is of first order: beside a fold through which a map just fails to have an equilibrium (a *ghost*, as in
z + gap + z^2) the residual falls to a positive minimum, and the estimated distance may fall below any tolerance. An
equilibrium differs by what lies behind it: there the residual has changed its sign. So the map is evaluated once more,
four estimated errors away, through the place where the estimate puts the equilibrium: in the slowest direction seen,
and at once in the others, each by so much that the residual changes as much.
There the residual must be what the steps predict, and point back. Where it is not (what the steps tell of a very slow
direction is mostly rounding), the map is evaluated on the other side too, and if need be on both sides nearer by: what
the residual has in common on both sides must be less than what tells them apart. Along one direction, and for a
continuous map, this is the intermediate value theorem. A ghost has the same sign on both sides, however small its gap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from separatrix.core.transforms import any_true

from ..maps.stacks import rows_from
from ..methods.base import States
from .error import Stretch

_BEYOND = 4.0
"""Length of the look in estimated errors: to first order the residual behind is then three times that at the state."""
_SHARE = 0.25
"""Least part of the predicted change of the residual by which it must have come out on the other side."""
_OFF_BY = 0.5
"""Largest deviation from the predicted residual, in units of the predicted change, beyond rounding."""
_IN_COMMON = 0.5
"""Largest part that residuals on both sides may have in common, in units of what they differ by."""
_NEARER = 1 / 16
"""Distance of the last look in units of the first: beside a fold the other equilibrium of a pair may be that near."""
_STEEP = 100.0
"""Change of a residual per length of the look beyond which the map is taken for discontinuous."""
_PROGRESS = 0.25
"""A refused state is not looked at again before its residual has fallen to this part."""


@final
class Crossing:
    """Claims of convergence that wait for their examination, one per sample."""

    def __init__(self, z: States) -> None:
        self._look = torch.zeros_like(z)
        self._predicted = torch.zeros_like(z)
        self._residual = torch.zeros_like(z)
        self._noise = z.new_zeros(z.shape[0])
        self.waiting = torch.zeros(z.shape[0], dtype=torch.bool, device=z.device)
        self.looks = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device)
        """Evaluations that the last examination of each sample took, for itself."""
        self.ceiling = torch.full_like(self._noise, torch.inf)
        """Residual above which a sample that was refused is not examined again."""

    def claim(self, rows: Tensor, residual: States, error: Tensor, noise: Tensor, slowest: Stretch) -> None:
        """Remember where to look for the samples of a mask; noise is the size of the rounding error of the map."""
        length = (_BEYOND * error).unsqueeze(-1)
        change = length * slowest.response
        length = torch.where(torch.linalg.vecdot(change, residual).unsqueeze(-1) > 0, -length, length)
        self._look = rows_from(length * slowest.direction, rows, self._look)
        self._predicted = rows_from(length * slowest.response, rows, self._predicted)
        self._residual = rows_from(residual, rows, self._residual)
        self._noise = torch.where(rows, noise, self._noise)
        self.waiting = self.waiting | rows

    def refused(self, best: States, image: Callable[[Tensor], Tensor]) -> Tensor:
        """Mask of those who waited and have no equilibrium where they claimed one; nobody waits afterwards.

        Args:
            best: the states that claim to have converged; what else it holds is not looked at.
            image: the map. It is evaluated once; a second time, and then twice more, as long as a sample is refused.
        """
        behind = self._seen(best, 1.0, self.waiting, image)
        refused = self.waiting & ~self._as_predicted(behind)
        self.looks = torch.where(self.waiting, 1, self.looks)
        if any_true(refused):
            self.looks = self.looks + refused.long()
            refused = refused & ~self._differ(behind, self._seen(best, -1.0, refused, image), 1.0)
        if any_true(refused):
            self.looks = self.looks + 2 * refused
            behind, before = (self._seen(best, side * _NEARER, refused, image) for side in (1.0, -1.0))
            refused = refused & ~self._differ(behind, before, _NEARER)
        size = torch.linalg.vector_norm(self._residual, dim=-1)
        self.ceiling = torch.where(refused, _PROGRESS * size, self.ceiling)
        self.waiting = torch.zeros_like(self.waiting)
        return refused

    def _seen(self, best: States, farther: float, rows: Tensor, image: Callable[[Tensor], Tensor]) -> States:
        """The residual of the samples of a mask at a multiple of their look."""
        point = rows_from(best + farther * self._look, rows, best)
        return image(point).detach() - point

    def _as_predicted(self, behind: States) -> Tensor:
        change = torch.linalg.vector_norm(self._predicted, dim=-1)
        deviation = torch.linalg.vector_norm(behind - self._residual - self._predicted, dim=-1)
        back = torch.linalg.vecdot(behind, self._predicted) >= _SHARE * change.square()
        at_rest = (self._residual == 0).all(-1)
        return at_rest | (back & (deviation <= _OFF_BY * change + 2 * self._noise))

    def _differ(self, behind: States, before: States, farther: float) -> Tensor:
        common = torch.linalg.vector_norm(behind + before, dim=-1)
        apart = torch.linalg.vector_norm(behind - before, dim=-1)
        length = farther * torch.linalg.vector_norm(self._look, dim=-1)
        return (common <= _IN_COMMON * apart) & (apart <= _STEEP * length)
