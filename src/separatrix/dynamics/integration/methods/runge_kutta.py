"""Explicit Runge-Kutta pairs."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.names import suggest_options

from ...flows.base import AbstractFlow
from .base import AbstractMethod, Attempt, Start
from .tableau import Tableau


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class RungeKutta(AbstractMethod):
    """An explicit pair. Stages are projected, so that a flow is only asked for velocities of admissible states.

    On a constrained space this is the method applied to velocity(project(x)), which has the same solutions: the
    order is kept.
    """

    tableau: Tableau

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the tableau."""
        return self.tableau.name

    @property
    def order(self) -> int:  # type: ignore[override]
        """That of the tableau."""
        return self.tableau.order

    @property
    def evaluations(self) -> int:  # type: ignore[override]
        """One fewer than stages: the first is the last of the step before."""
        return self.tableau.n_stages - 1

    @property
    def lands(self) -> bool:  # type: ignore[override]
        """Unless the tableau has dense output."""
        return self.tableau.dense is None

    def attempt(self, flow: AbstractFlow, start: Start) -> Attempt:
        """All stages; the last is taken at the proposed state."""
        x, t, h, live = start.x, start.t, start.h, start.live
        table, numbers = self.tableau, self.tableau.on(x.dtype, x.device)
        size = h.to(x.dtype)[:, None, None]
        slopes = x.new_empty(table.n_stages, *x.shape)
        flat = slopes.view(table.n_stages, -1)
        slopes[0] = start.velocity
        y = x
        for i in range(1, table.n_stages):
            y = (numbers.stages[i] @ flat[:i]).view_as(x)
            y = flow.project(y.mul_(size).add_(x))
            slope = flow.velocity(y, t + table.nodes[i] * h)
            slopes[i] = slope if live is None else slope * live
        errors = (numbers.errors @ flat).view(-1, *x.shape).mul_(size)
        return Attempt(y, slopes[-1], errors, slopes)

    def between(self, x: Float[Tensor, "batch n d"], attempt: Attempt, h: Tensor, theta: Tensor) -> Tensor:
        """The polynomial of the tableau in theta."""
        dense = self.tableau.on(torch.float64, x.device).dense
        assert dense is not None
        powers = theta.unsqueeze(-1) ** torch.arange(1, dense.shape[1] + 1, device=x.device)
        weights = h.unsqueeze(-1) * (powers @ dense.mT)
        return x.double() + torch.einsum("bs,sbnd->bnd", weights, attempt.slopes.double())
