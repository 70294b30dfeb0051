"""Orbits as polynomials on intervals: the points, the mesh, its first guess by integration, its halving."""

from __future__ import annotations

import dataclasses
import functools
from typing import final

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Outcome

from ...flows.base import AbstractFlow
from ..driver import Run
from ..methods.control import ScaledControl
from ..methods.named import find_method
from ..plan import Plan
from ..stepping import LARGEST_IMPLICIT
from ..stopping import Until

POINTS = 6
"""Collocation points of an interval."""

INTERVALS = 6
"""Intervals of the first mesh."""

FRAMES = 48
"""Equidistant states of the first guess, from which the first mesh is chosen."""

FASTEST = 10.0
"""Rates, times the length of an interval, up to which its points are asked to follow a motion."""

GUESS = 1e-4
"""Relative tolerance of the first guess."""

EXPLICIT_STEPS, IMPLICIT_STEPS = 300, 1000
"""Steps in which an explicit method, and then an implicit one, must come around."""


@final
@dataclasses.dataclass(frozen=True)
class Points:
    """Collocation points of the unit interval, and integrals from 0 of their Lagrange polynomials.

    ``inner`` has the integrals up to each node, ``weights`` those over the whole interval. ``damped`` says whether a
    decay that is fast against the interval decays.
    """

    nodes: Float[Tensor, " s"]
    inner: Float[Tensor, "s s"]
    weights: Float[Tensor, " s"]
    damped: bool

    def followed(self, values: Tensor) -> Tensor:
        """Which rates, times the length of an interval, the points can follow.

        Fast decay stays neutral at the points of Gauss, and fast growth is taken for decay at those of Radau, on every
        mesh alike: a comparison of meshes does not see it.
        """
        if self.damped:
            return torch.maximum(values.real, values.imag.abs()) < FASTEST
        return values.abs() < FASTEST


@functools.cache
def gauss() -> Points:
    """Order 12 at the ends of the intervals; neutral orbits stay neutral on any mesh. On the CPU."""
    return _points(numpy.polynomial.legendre.leggauss(POINTS)[0], damped=False)


@functools.cache
def radau() -> Points:
    """Order 11: where the last two Legendre polynomials are equal; for orbits that are slow beside what contracts."""
    difference = [0.0] * (POINTS - 1) + [-1.0, 1.0]
    return _points(numpy.sort(numpy.polynomial.legendre.legroots(difference)), damped=True)


def _points(roots: numpy.ndarray, *, damped: bool) -> Points:
    nodes = torch.as_tensor((roots + 1) / 2)
    return Points(nodes, integrals(nodes, nodes), integrals(nodes, torch.ones(1, dtype=torch.float64))[0], damped)


def integrals(nodes: Float[Tensor, " s"], at: Float[Tensor, " places"]) -> Float[Tensor, "places s"]:
    """Of the Lagrange polynomials of the nodes, from 0 to some places."""
    exponents = torch.arange(len(nodes), dtype=torch.float64)
    powers = at.unsqueeze(-1) ** (exponents + 1) / (exponents + 1)
    return torch.linalg.solve((nodes.unsqueeze(-1) ** exponents).mT, powers.mT).mT


@final
@dataclasses.dataclass(frozen=True)
class Rescaled(AbstractFlow):
    """A flow in units of its own: of time a period of each element, of length the size of its state."""

    flow: AbstractFlow
    period: Float[Tensor, "batch 1 1"]
    size: Float[Tensor, "batch 1 1"]

    def velocity(self, x: Float[Tensor, "batch n d"], t: Tensor | None = None) -> Float[Tensor, "batch n d"]:
        """That of the flow in the new units."""
        return self.period / self.size * self.flow.velocity(self.size * x)

    def jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch3 n d"]:
        """That of the flow in the new units."""
        return self.period * self.flow.jvp(self.size * x, u)

    def project(self, x: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        """As the flow."""
        return self.flow.project(self.size * x) / self.size

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Rescaled:
        """Some elements."""
        return Rescaled(self.flow.select(batch_shape, index), self.period[index], self.size[index])

    def to(self, dtype: torch.dtype) -> Rescaled:
        """Another precision."""
        return Rescaled(self.flow.to(dtype), self.period.to(dtype), self.size.to(dtype))


@final
@dataclasses.dataclass
class Mesh:
    """An approximate orbit. Mutable. States are flat: k = n d coordinates of the whole space."""

    size: Float[Tensor, "batch intervals"]
    """Shares of the period."""
    ends: Float[Tensor, "batch intervals1 k"]
    inner: Float[Tensor, "batch intervals s k"]
    period: Float[Tensor, " batch"]
    points: Points

    def keep(self, chosen: Tensor) -> Mesh:
        """Some elements."""
        return Mesh(self.size[chosen], self.ends[chosen], self.inner[chosen], self.period[chosen], self.points)

    def halved(self, slopes: Float[Tensor, "batch intervals s k"], flow: AbstractFlow, shape: torch.Size) -> Mesh:
        """Every interval halved, with states on the polynomials that have these slopes."""
        nodes = self.points.nodes
        halves = torch.cat([nodes / 2, (1 + nodes) / 2, torch.tensor([0.5, 1.0], dtype=torch.float64)])
        weights = integrals(nodes, halves).to(slopes.device)
        time = (self.size * self.period.unsqueeze(-1))[..., None, None]
        states = self.ends[:, :-1].unsqueeze(2) + time * torch.einsum("jl,bilk->bijk", weights, slopes)
        inner = states[:, :, : 2 * POINTS].unflatten(2, (2, POINTS)).flatten(1, 2)
        ends = torch.cat([self.ends[:, :1], states[:, :, 2 * POINTS :].flatten(1, 2)], dim=1)
        size = (self.size / 2).repeat_interleave(2, dim=1)
        return Mesh(size, projected(flow, ends, shape), projected(flow, inner, shape), self.period, self.points)


def guessed(flow: AbstractFlow, x: Tensor, period: Tensor, points: Points) -> tuple[Mesh, Tensor, Tensor]:
    """The motion over the guessed period on a mesh that is fine where it is fast or curved, and its mismatch."""
    frames = torch.linspace(0, 1, FRAMES + 1, dtype=torch.float64, device=x.device)
    unit = x.abs().amax(dim=(-2, -1), keepdim=True).clamp_min(1e-280)
    states, spent = _followed(Rescaled(flow, period[:, None, None], unit), x / unit, frames)
    states = unit * states.flatten(2)
    mismatch = torch.linalg.vector_norm(states[:, -1] - states[:, 0], dim=-1)
    size = _spacing(states.nan_to_num())
    places = _places(size, points)
    at = torch.cat([places.flatten(1), size.cumsum(dim=-1)], dim=-1).clamp(0, 1)
    left = (at * FRAMES).long().clamp_max(FRAMES - 1)
    theta = (at * FRAMES - left).unsqueeze(-1)
    pick = left.unsqueeze(-1).expand(-1, -1, states.shape[-1])
    between = (1 - theta) * states.gather(1, pick) + theta * states.gather(1, pick + 1)
    between = flow.project(between.unflatten(-1, x.shape[1:]).transpose(0, 1)).transpose(0, 1).flatten(2)
    inner = between[:, : places[0].numel()].unflatten(1, places.shape[1:])
    ends = torch.cat([x.flatten(1).unsqueeze(1), between[:, places[0].numel() :]], dim=1)
    mesh = Mesh(size, ends, inner, period, points)
    return mesh, mismatch, spent


def _followed(flow: Rescaled, x: Tensor, frames: Tensor) -> tuple[Float[Tensor, "batch frames n d"], Tensor]:
    """States at times up to one, NaN where they were not reached, and the cost; stiff motions by an implicit method."""
    states = x.new_full((len(x), len(frames), *x.shape[1:]), torch.nan)
    spent = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    going = torch.arange(len(x), device=x.device)
    for name, steps in (("tsit5", EXPLICIT_STEPS), ("rodas4", IMPLICIT_STEPS)):
        plan = Plan(find_method(name), ScaledControl(GUESS, GUESS), Until(), steps)
        own = flow.select((len(x),), going)
        run = Run(own, (len(going),), x[going], plan, torch.ones(len(going), dtype=x.dtype, device=x.device), frames)
        run.run()
        assert run.books.states is not None
        states[going], done = run.books.states, run.books.outcome == Outcome.COMPLETED
        spent[going] += run.books.evaluations
        going = going[~done]
        if not len(going) or x.shape[1] * x.shape[2] > LARGEST_IMPLICIT:
            break
    states[going] = torch.nan
    return states, spent


def _spacing(states: Float[Tensor, "batch frames k"]) -> Float[Tensor, "batch intervals"]:
    """Shares of the period that hold equal amounts of time, way and turning."""
    way = torch.linalg.vector_norm(states.diff(dim=1), dim=-1)
    bend = torch.linalg.vector_norm(states.diff(n=2, dim=1), dim=-1).sqrt()
    bend = torch.cat([bend, bend[:, -1:]], dim=1)
    shares = [part / part.mean(dim=1, keepdim=True).clamp_min(1e-280) for part in (way, bend)]
    density = 1 + shares[0] + shares[1]
    total = torch.cat([torch.zeros_like(density[:, :1]), density.cumsum(dim=1)], dim=1)
    goal = total[:, -1:] * torch.linspace(0, 1, INTERVALS + 1, dtype=states.dtype, device=states.device)
    right = torch.searchsorted(total, goal.contiguous()).clamp(1, FRAMES)
    low, high = total.gather(1, right - 1), total.gather(1, right)
    return ((right - 1 + (goal - low) / (high - low)) / FRAMES).diff(dim=1)


def _places(size: Float[Tensor, "batch intervals"], points: Points) -> Float[Tensor, "batch intervals s"]:
    """Collocation points as shares of the period."""
    start = size.cumsum(dim=-1) - size
    return start.unsqueeze(-1) + size.unsqueeze(-1) * points.nodes.to(size.device)


def projected(flow: AbstractFlow, states: Tensor, shape: torch.Size) -> Tensor:
    """Admissible states, whatever axes stand between batch and state."""
    full = states.unflatten(-1, shape)
    return flow.project(full.movedim(0, -3)).movedim(-3, 0).flatten(-2)
