"""One adaptive Runge-Kutta step of many trajectories at once, each with its own step size.

The error of a step is judged against the displacement of that step, not against the length of a token (which is
always one): err = max_i |e_i| / (rtol min(h |f|, 0.3) + atol h). With the usual norm an explicit method sits at its
stability limit close to rest, and the speed never falls below rtol times the stiffest rate.
"""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch
from torch import Tensor

from ..flows.base import AbstractFlow
from .tableau import Tableau

LARGEST_DISPLACEMENT = 0.3
SAFETY, SHRINK, GROW = 0.9, 0.2, 4.0


@final
@dataclasses.dataclass
class Pool:
    """Trajectories that are advanced together: same number of rows, same precision. Mutable working state.

    ``x`` has one row per token, or after merging one per cluster with ``sizes`` (zero for a place holder) and
    ``labels`` from the original tokens to rows. ``threshold`` is the speed at which the next attempt to finish is due
    (zero while a trajectory leaves a saddle, until its speed exceeds ``rearm``).
    """

    index: Tensor
    x: Tensor
    velocity: Tensor
    speed: Tensor
    t: Tensor
    h: Tensor
    last_error: Tensor
    threshold: Tensor
    labels: Tensor
    sizes: Tensor | None = None

    def keep(self, chosen: Tensor | slice) -> Pool:
        """The trajectories ``chosen`` by a mask, indices or a slice."""
        fields: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        chosen_fields: dict[str, Any] = {n: None if item is None else item[chosen] for n, item in fields.items()}
        return Pool(**chosen_fields)

    @staticmethod
    def join(pools: list[Pool]) -> Pool:
        """One pool of several; all must have merged rows or none."""
        if len(pools) == 1:
            return pools[0]
        names = [field.name for field in dataclasses.fields(Pool)]
        columns: dict[str, Any] = {name: [getattr(pool, name) for pool in pools] for name in names}
        joined: dict[str, Any] = {n: None if items[0] is None else torch.cat(items) for n, items in columns.items()}
        return Pool(**joined)

    def to(self, dtype: torch.dtype) -> Pool:
        """The same trajectories in another precision."""
        fields: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        floats = ("x", "velocity", "speed", "sizes")
        return Pool(
            **{name: item.to(dtype) if name in floats and item is not None else item for name, item in fields.items()}
        )

    def tokens(self) -> Tensor:
        """The state of all original tokens, in float64."""
        rows = self.labels.unsqueeze(-1).expand(-1, -1, self.x.shape[-1])
        return self.x.gather(1, rows).double()

    @property
    def live(self) -> Tensor | None:
        """1 for rows that stand for tokens, 0 for place holders; None if every row is a token."""
        return None if self.sizes is None else (self.sizes > 0).to(self.x.dtype).unsqueeze(-1)


@final
@dataclasses.dataclass(frozen=True)
class Stepper:
    """How a step is made and judged; ``atol`` is in units of the rate of the flow."""

    tableau: Tableau
    rtol: float
    atol: float

    def step(self, flow: AbstractFlow, pool: Pool, t_max: Tensor, rate: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Advance the pool in place where the error allows; returns accepted, previous state and velocity."""
        live = pool.live
        h = torch.minimum(pool.h, t_max - pool.t)
        size = h.to(pool.x.dtype)[:, None, None]
        slopes, proposal = self._stages(flow, pool, size, live)
        error = self._error(slopes, size, pool, rate)
        accepted = (error <= 1) & torch.isfinite(error)
        before = pool.x, pool.velocity
        chosen = accepted[:, None, None]
        pool.x = torch.where(chosen, proposal, pool.x)
        pool.velocity = torch.where(chosen, slopes[-1], pool.velocity)
        pool.speed = torch.linalg.vector_norm(pool.velocity, dim=-1).amax(dim=-1)
        pool.t = torch.where(accepted, pool.t + h, pool.t)
        pool.h, pool.last_error = self._next_size(h, error, accepted, pool.last_error)
        return accepted, *before

    def _stages(self, flow: AbstractFlow, pool: Pool, size: Tensor, live: Tensor | None) -> tuple[Tensor, Tensor]:
        """Slopes (stages, b, n, d) and the proposed state, at which the last slope is taken."""
        table, x = self.tableau, pool.x
        slopes = x.new_empty(table.n_stages, *x.shape)
        flat = slopes.view(table.n_stages, -1)
        slopes[0] = pool.velocity
        y = x
        for i in range(1, table.n_stages):
            coefficients = x.new_tensor(table.stages[i])
            y = (coefficients @ flat[:i]).view_as(x)
            y = flow.project(y.mul_(size).add_(x))
            slope = flow.velocity(y, pool.t + table.nodes[i] * pool.h)
            slopes[i] = slope if live is None else slope * live
        return slopes, y

    def _error(self, slopes: Tensor, size: Tensor, pool: Pool, rate: Tensor) -> Tensor:
        weights = slopes.new_tensor(self.tableau.error)
        estimate = (weights @ slopes.view(len(weights), -1)).view_as(pool.x).mul_(size)
        largest = torch.linalg.vector_norm(estimate, dim=-1).amax(dim=-1).double()
        h = size.view(-1).double()
        allowed = self.rtol * (h * pool.speed.double()).clamp_max(LARGEST_DISPLACEMENT) + self.atol * rate * h
        return largest / allowed.clamp_min(1e-300)

    def _next_size(self, h: Tensor, error: Tensor, accepted: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """Proportional-integral control: the error of the step before damps the change of size."""
        safe = torch.nan_to_num(error, nan=1e10, posinf=1e10).clamp(1e-10, 1e10)
        order = self.tableau.order
        factor = SAFETY * safe ** (-0.7 / order) * last ** (0.4 / order)
        factor = torch.where(accepted, factor.clamp(SHRINK, GROW), (SAFETY * safe ** (-1 / order)).clamp(SHRINK, 1.0))
        return h * factor, torch.where(accepted, safe.clamp_min(1e-4), last)


def start_pool(flow: AbstractFlow, x: Tensor, index: Tensor, threshold: Tensor, rate: Tensor) -> Pool:
    """Trajectories at time zero, with a first step that turns no token by more than about 0.05 rad."""
    velocity = flow.velocity(x, torch.zeros(len(x), dtype=torch.float64, device=x.device))
    speed = torch.linalg.vector_norm(velocity, dim=-1).amax(dim=-1)
    h = 0.05 / torch.maximum(speed.double(), 0.1 * rate)
    labels = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
    zeros = torch.zeros_like(h)
    return Pool(index, x, velocity, speed, zeros, h, torch.ones_like(h), threshold, labels)
