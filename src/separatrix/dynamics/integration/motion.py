"""The motions of a batch: which flow each trajectory follows, and how it starts."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..flows.base import AbstractFlow, AbstractSphereFlow
from .plan import Plan
from .pool import Pool

POOL_ENTRIES = 160_000
"""Attention weights, or entries, of one pool: what stays in a second-level cache with the slopes of a step."""

SMALLEST = 1e-280
"""Instead of zero in denominators."""

LARGEST_SINGLE = 1e9
"""Rates beyond this, or below its inverse, are not left to float32."""

SMALLEST_SHARE = 1e-30
"""Sizes below this share of the largest are not left to float32, where they might be zero."""


@final
class Motion:
    """A flow, the batch it moves, and the units of each element.

    ``rate`` is the unit of speed of each trajectory on the sphere, None elsewhere; ``sizes`` say how many tokens each
    row of a start stands for.
    """

    def __init__(self, flow: AbstractFlow, batch_shape: tuple[int, ...], x0: Float[Tensor, "batch n d"]) -> None:
        self.shape, self.starts = batch_shape or (1,), x0
        self.flow, self.sizes, self.rate = flow, None, None
        if isinstance(flow, AbstractSphereFlow):
            self.rate = flow.rate.expand(self.shape).reshape(-1).clamp_min(SMALLEST)
            if flow.sizes is not None:
                self.sizes = comparable(flow.sizes.expand(*self.shape, x0.shape[1]).flatten(0, -2))
                self.flow = flow.with_sizes(None)

    def at(self, index: Tensor) -> AbstractFlow:
        """The flow of single tokens of some trajectories."""
        return self.flow.select(self.shape, index)

    def sized_at(self, index: Tensor) -> AbstractFlow:
        """The flow of the rows that the caller passed."""
        return with_sizes(self.at(index), None if self.sizes is None else self.sizes[index])

    def of(self, pool: Pool) -> AbstractFlow:
        """The flow of the rows of a pool, in its precision."""
        flow = with_sizes(self.at(pool.index), None if pool.sizes is None else pool.sizes.double())
        return flow.to(pool.x.dtype)

    def pool_size(self, rows: int, dim: int) -> int:
        """Trajectories that are advanced together."""
        return max(4, min(1024, POOL_ENTRIES // (rows * (dim if self.rate is None else rows))))

    def extent(self, pool: Pool) -> Float[Tensor, " batch"]:
        """How far each trajectory is from its start."""
        return torch.linalg.vector_norm(pool.tokens() - self.starts[pool.index], dim=-1).amax(dim=-1)

    def scale(self, pool: Pool, point: Tensor) -> Float[Tensor, " batch"]:
        """The length against which a perturbation is small: one on the sphere, and where nothing else is known."""
        if self.rate is not None:
            return torch.ones_like(pool.t)
        size = self.extent(pool) + point.flatten(1).abs().amax(dim=-1)
        return torch.where(size > 0, size, torch.ones_like(size))

    def fits_single(self, pool: Pool) -> Bool[Tensor, " batch"]:
        """Whether squares of speeds, down to those that count as slow, are numbers in float32."""
        if self.rate is None:
            return torch.ones_like(pool.t, dtype=torch.bool)
        rate = self.rate[pool.index]
        fit = (rate > 1 / LARGEST_SINGLE) & (rate < LARGEST_SINGLE)
        return fit if self.sizes is None else fit & have_weight(self.sizes[pool.index])

    def start(self, plan: Plan, x: Tensor, index: Tensor, threshold: float) -> Pool:
        """Trajectories at time zero."""
        flow = self.sized_at(index)
        zeros = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        velocity = flow.velocity(x, zeros)
        unit = torch.full_like(zeros, SMALLEST) if self.rate is None else self.rate[index]
        length = self._length(plan, flow, x, velocity)
        labels = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
        return Pool(
            index=index,
            x=x,
            velocity=velocity,
            speed=torch.linalg.vector_norm(velocity, dim=-1).amax(dim=-1),
            t=zeros,
            h=plan.control.first_size(flow, x, velocity, unit, length, plan.method.order),
            last_error=torch.ones_like(zeros),
            threshold=torch.full_like(zeros, threshold),
            unit=unit,
            length=length,
            labels=labels,
            sizes=None if self.sizes is None else self.sizes[index],
        )

    def _length(self, plan: Plan, flow: AbstractFlow, x: Tensor, velocity: Tensor) -> Tensor:
        """The larger of the size of a state and of the way on which its velocity changes, if that is below one.

        The second, |f|^2 / |f' f|, speaks for states at the origin.
        """
        ones = torch.ones(len(x), dtype=torch.float64, device=x.device)
        if not plan.own_length:
            return ones
        if not plan.stop.sought:  # a derivative is not asked for
            length = x.abs().flatten(1).amax(dim=-1)
            return torch.where(length > 0, torch.minimum(length, ones), ones)
        speed = torch.linalg.vector_norm(velocity.flatten(1), dim=-1)
        change = torch.linalg.vector_norm(flow.jvp(x, velocity).flatten(1), dim=-1)
        way = torch.where((speed > 0) & (change > 0), speed * (speed / change.clamp_min(SMALLEST)), 0.0)
        length = torch.maximum(x.abs().flatten(1).amax(dim=-1), way.nan_to_num(nan=1.0))
        return torch.where(length > 0, torch.minimum(length, ones), ones)


def comparable(sizes: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """The same shares with the largest near one, where it is not a moderate number: only shares matter to a flow."""
    largest = sizes.amax(dim=-1, keepdim=True)
    moderate = (largest > 1 / LARGEST_SINGLE) & (largest < LARGEST_SINGLE)
    return torch.where(moderate, sizes, torch.ldexp(sizes, -torch.frexp(largest).exponent))  # exact


def have_weight(sizes: Float[Tensor, "*batch n"]) -> Bool[Tensor, "*batch"]:
    """Whether all sizes but those of place holders, which are zero, are numbers in float32."""
    least = torch.where(sizes > 0, sizes, torch.inf).amin(dim=-1)
    return least >= SMALLEST_SHARE * sizes.amax(dim=-1)


def with_sizes(flow: AbstractFlow, sizes: Tensor | None) -> AbstractFlow:
    """The flow of rows that stand for several tokens; itself if none do."""
    if sizes is None:
        return flow
    assert isinstance(flow, AbstractSphereFlow)
    return flow.with_sizes(sizes)
