"""Does a trajectory come back? Watched along the way, at the cost of a few operations per step."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..methods.base import Attempt, cubic
from ..pool import Anchor, Pool

REFINEMENTS = 3
"""Corrections of the time of a crossing within a step."""


@final
@dataclasses.dataclass(frozen=True)
class Returns:
    """Recognises returns to an anchor, a former state of the trajectory.

    A return is a crossing, in the direction of the motion, of the hyperplane through the anchor normal to the velocity
    there, within ``near`` times the extent of the loop. The first anchor is set after ``patience`` steps; as the
    motion may still be settling, it is renewed when the number of steps has doubled, unless ``renew`` is false.
    """

    patience: int = 40
    near: float = 0.1
    renew: bool = True

    def anchored(self, pool: Pool, steps: Tensor) -> Pool:
        """The pool with fresh anchors at the present states."""
        zero = torch.zeros_like(pool.t)
        until = 2 * steps.clamp_min(1) if self.renew else torch.full_like(steps, torch.iinfo(steps.dtype).max)
        anchor = Anchor(pool.x.double(), pool.velocity.double(), pool.t, zero, zero, until)
        return dataclasses.replace(pool, anchor=anchor)

    def check(
        self, pool: Pool, t_before: Tensor, x_before: Tensor, attempt: Attempt, steps: Tensor
    ) -> tuple[Bool[Tensor, " batch"], Float[Tensor, " batch"]]:
        """Which trajectories returned during the last step, and the time since they left; renews old anchors."""
        anchor = pool.anchor
        assert anchor is not None
        away = pool.x.double() - anchor.x
        height = (away * anchor.velocity).sum(dim=(-2, -1))
        anchor.extent = torch.maximum(anchor.extent, torch.linalg.vector_norm(away.flatten(1), dim=-1))
        back = (anchor.height < 0) & (height >= 0)
        period = torch.zeros_like(pool.t)
        if bool(back.any()):
            at = back.nonzero().squeeze(-1)
            back[at], period[at] = self._place(pool.keep(at), t_before[at], x_before[at], attempt.part(at), height[at])
        anchor.height = height
        self._renew(pool, steps)
        return back, period

    def _place(
        self, pool: Pool, t_before: Tensor, x_before: Tensor, attempt: Attempt, height: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Whether crossings lie close to the anchor, and the times since it was set, by cubic interpolation."""
        anchor, size = pool.anchor, pool.t - t_before
        assert anchor is not None
        theta = anchor.height / (anchor.height - height)
        for _ in range(REFINEMENTS):
            away = cubic(x_before, attempt, size, theta) - anchor.x
            here = (away * anchor.velocity).sum(dim=(-2, -1))
            theta = (theta - here / (height - anchor.height)).clamp(0, 1)
        close = torch.linalg.vector_norm(away.flatten(1), dim=-1) < self.near * anchor.extent
        return close, t_before + theta * size - anchor.t

    def _renew(self, pool: Pool, steps: Tensor) -> None:
        assert pool.anchor is not None
        old = steps >= pool.anchor.until
        if bool(old.any()):
            fresh = self.anchored(pool, steps).anchor
            assert fresh is not None
            for field in dataclasses.fields(Anchor):
                new, kept = getattr(fresh, field.name), getattr(pool.anchor, field.name)
                mask = old.reshape(-1, *(1,) * (new.ndim - 1))
                setattr(pool.anchor, field.name, torch.where(mask, new, kept))
