"""Orbits as polynomials on intervals: the mesh, its first guess by integration, its halving."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core import Outcome
from separatrix.core.arithmetic.eigenvalues import eigvals

from ...flows.base import AbstractFlow
from ..driver import Run
from ..methods.control import ScaledControl
from ..methods.named import find_method
from ..methods.rosenbrock import slope_matrix
from ..plan import Plan
from ..stepping import LARGEST_IMPLICIT
from ..stopping import Until
from .points import POINTS, Points, integrals

FIRST_INTERVALS, STEPS_EACH, STIFF_STEPS_EACH = (6, 12, 24, 48, 96, 192), 4, 2
"""Intervals that a first mesh may have, and how many steps of the first guess each of them may hold."""

FAR = 0.3
"""Share of the extent of a loop by which a path that came around may miss its start."""

GUESS, STIFF_GUESS = 1e-6, 1e-4
"""Relative tolerance of the first guess, and of one that takes an implicit method. A coarse guess moves the orbit of a
neutral family to a neighbour."""

EXPLICIT_STEPS, IMPLICIT_STEPS = 300, 1000
"""Steps in which an explicit method, and then an implicit one, must come around."""


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


def guessed(flow: AbstractFlow, x: Tensor, period: Tensor) -> tuple[Path, Tensor]:
    """The motion over the guessed period, and its cost; stiff motions by an implicit method."""
    unit = x.abs().amax(dim=(-2, -1), keepdim=True).clamp_min(1e-280)
    scaled, start = Rescaled(flow, period[:, None, None], unit), x / unit
    spent = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    parts, going = list[tuple[Tensor, Path]](), torch.arange(len(x), device=x.device)
    small = x.shape[1] * x.shape[2] <= LARGEST_IMPLICIT
    hopeless = _decay(scaled, start) > 3 * EXPLICIT_STEPS if small else torch.zeros_like(period, dtype=torch.bool)
    for name, steps in (("tsit5", EXPLICIT_STEPS), ("rodas4", IMPLICIT_STEPS)):
        stiff = name == "rodas4"
        now = going if stiff else going[~hopeless]
        if not len(now):
            continue
        tol = STIFF_GUESS if stiff else GUESS
        plan = Plan(find_method(name), ScaledControl(tol, tol), Until(), steps)
        own = scaled.select((len(x),), now)
        run = Run(own, (len(now),), start[now], plan, torch.ones_like(period[now]), None)
        run.books.log = []
        run.run()
        times, states, count = run.books.path()
        spent[now] += run.books.evaluations
        done = run.books.outcome == Outcome.COMPLETED
        kept = done if small and not stiff else torch.ones_like(done)
        states = unit[now, None] * torch.where(done[:, None, None, None], states, torch.nan)
        marks = torch.full_like(done[kept], stiff)
        parts.append((now[kept], Path(times[kept], states[kept].flatten(2), count[kept], marks)))
        going = going[~torch.isin(going, now[kept])]
    return Path.together(parts), spent


def _decay(flow: Rescaled, x: Tensor) -> Float[Tensor, " batch"]:
    """The fastest decay at a state, over one period."""
    return -eigvals(slope_matrix(flow, x, None).nan_to_num()).real.amin(dim=-1)


@final
@dataclasses.dataclass(frozen=True)
class Path:
    """A motion at the steps of the method that followed it: shares of the period, flat states, numbers of steps.

    States are NaN where the end was not reached. Steps are short where the motion is hard to follow, which is what a
    mesh should be.
    """

    times: Float[Tensor, "batch steps1"]
    states: Float[Tensor, "batch steps1 k"]
    count: Int[Tensor, " batch"]
    stiff: Bool[Tensor, " batch"]
    """Whether it took an implicit method."""

    @classmethod
    def together(cls, parts: list[tuple[Tensor, Path]]) -> Path:
        """The paths of parts of a batch, with their places, as one."""
        longest = max(path.times.shape[1] for _, path in parts)
        order = torch.cat([at for at, _ in parts]).argsort()

        def padded(tensor: Tensor) -> Tensor:
            more = tensor[:, -1:].expand(-1, longest - tensor.shape[1], *tensor.shape[2:])
            return torch.cat([tensor, more], dim=1)

        times = torch.cat([padded(path.times) for _, path in parts])[order]
        states = torch.cat([padded(path.states) for _, path in parts])[order]
        count = torch.cat([path.count for _, path in parts])[order]
        return cls(times, states, count, torch.cat([path.stiff for _, path in parts])[order])

    def keep(self, chosen: Tensor) -> Path:
        """Some elements."""
        return Path(self.times[chosen], self.states[chosen], self.count[chosen], self.stiff[chosen])

    @property
    def mismatch(self) -> Float[Tensor, " batch"]:
        """Distance between start and end."""
        return torch.linalg.vector_norm(self.states[:, -1] - self.states[:, 0], dim=-1)

    @property
    def lost(self) -> Bool[Tensor, " batch"]:
        """Whether the end is far from the start although it was near when it was followed before: chance, no orbit."""
        extent = torch.linalg.vector_norm(self.states - self.states[:, :1], dim=-1).amax(dim=-1)
        return (self.mismatch > FAR * extent) & ~self.stiff  # a jump that comes a little late is far, too

    def slowest(
        self, flow: AbstractFlow, x: Float[Tensor, "batch n d"], shape: torch.Size
    ) -> Float[Tensor, "batch n d"]:
        """The state on each stiff path where it is slowest, far from its jumps; x on the others."""
        steps = self.states.shape[1]
        wide = flow.select((len(x),), torch.arange(len(x), device=x.device).repeat_interleave(steps))
        states = self.states.unflatten(-1, shape)
        speed = torch.linalg.vector_norm(wide.velocity(states.flatten(0, 1)).flatten(1), dim=-1).unflatten(
            0, (-1, steps)
        )
        place = torch.where(torch.isfinite(speed), speed, torch.inf).argmin(dim=-1)
        best = states[torch.arange(len(x), device=x.device), place]
        usable = self.stiff & torch.isfinite(best).flatten(1).all(dim=-1)
        return torch.where(usable[:, None, None], best, x)

    @property
    def intervals(self) -> Int[Tensor, " batch"]:
        """Of the first mesh that holds the motion: a few steps in each, fewer where jumps must be met."""
        sizes = torch.tensor(FIRST_INTERVALS, device=self.count.device)
        needed = self.count / torch.where(self.stiff, STIFF_STEPS_EACH, STEPS_EACH)
        return sizes[torch.searchsorted(sizes.double(), needed.double()).clamp_max(len(sizes) - 1)]

    def mesh(
        self, flow: AbstractFlow, period: Float[Tensor, " batch"], shape: torch.Size, intervals: int, points: Points
    ) -> Mesh:
        """Intervals that hold equal numbers of steps, with states on polynomials from step to step."""
        at = torch.linspace(0, 1, intervals + 1, dtype=torch.float64, device=period.device) * self.count.unsqueeze(-1)
        left = at.long().minimum(self.count.unsqueeze(-1) - 1).clamp_min(0)
        low, high = self.times.gather(1, left), self.times.gather(1, left + 1)
        size = (low + (at - left) * (high - low)).diff(dim=1)
        places = _places(size, points)
        both = self._between(flow, period, shape, torch.cat([places.flatten(1), size.cumsum(dim=-1)], dim=-1))
        inner = both[:, : places[0].numel()].unflatten(1, places.shape[1:])
        ends = torch.cat([self.states[:, :1], both[:, places[0].numel() :]], dim=1)
        return Mesh(size, ends, inner, period, points)

    def _between(
        self, flow: AbstractFlow, period: Tensor, shape: torch.Size, at: Float[Tensor, "batch places"]
    ) -> Float[Tensor, "batch places k"]:
        """States at shares of the period."""
        right = torch.searchsorted(self.times[:, 1:-1].contiguous(), at.contiguous()).minimum(
            self.count.unsqueeze(-1) - 1
        )
        low, high = self.times.gather(1, right), self.times.gather(1, right + 1)
        pick = right.unsqueeze(-1).expand(-1, -1, self.states.shape[-1])
        a, b = self.states.gather(1, pick), self.states.gather(1, pick + 1)
        every = torch.arange(len(period), device=period.device).repeat_interleave(at.shape[1])
        wide = flow.select((len(period),), every)
        time = (period.unsqueeze(-1) * (high - low)).unsqueeze(-1)
        da, db = (time * wide.velocity(x.reshape(-1, *shape)).reshape(a.shape) for x in (a, b))
        s = ((at - low) / (high - low).clamp_min(1e-300)).clamp(0, 1).unsqueeze(-1)
        cubic = (1 + 2 * s) * (1 - s) ** 2 * a + s * (1 - s) ** 2 * da + s**2 * (3 - 2 * s) * b + s**2 * (s - 1) * db
        # velocities of a stiff motion are those of its errors
        return projected(flow, torch.where(self.stiff[:, None, None], (1 - s) * a + s * b, cubic), shape)


def _places(size: Float[Tensor, "batch intervals"], points: Points) -> Float[Tensor, "batch intervals s"]:
    """Collocation points as shares of the period."""
    start = size.cumsum(dim=-1) - size
    return start.unsqueeze(-1) + size.unsqueeze(-1) * points.nodes.to(size.device)


def projected(flow: AbstractFlow, states: Tensor, shape: torch.Size) -> Tensor:
    """Admissible states, whatever axes stand between batch and state."""
    full = states.unflatten(-1, shape)
    return flow.project(full.movedim(0, -3)).movedim(-3, 0).flatten(-2)
