"""Continua of equilibria: curves and surfaces on which every point rests.

Symmetry, a repeated eigenvalue or a conserved quantity makes equilibria come in connected sets. Along such a set the
Jacobian is singular. The converse fails (a triple zero is singular and alone), so that a singular Jacobian is only the
occasion to look: two points belong together if one can walk from one to the other along equilibria, and the dimension
is the number of independent directions in which one can leave.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..flows.base import AbstractFlow, AbstractSphereFlow

SINGULAR = 1e-7
"""Singular values of the Jacobian below this share of the rate of the flow may belong to a continuum."""

STEP = 0.05
"""Length of a step along a continuum, in units of the scale of the states."""

ARRIVED = 0.02
"""Share of a step within which a walk has reached its goal. Newton's method ends beside a degenerate zero only."""

WALK = 40
"""Steps of a walk. Points that are further apart are linked by others between them."""

CORRECTIONS, RESIDUAL = 8, 1e-12
"""Newton steps back to the continuum, and the speed at which they have arrived, in units of rate times scale."""


@final
@dataclasses.dataclass(frozen=True)
class Continua:
    """For each point: the index of the first point of its continuum, and the dimension (0 where it is alone)."""

    first: Int[Tensor, " points"]
    dimension: Int[Tensor, " points"]


def find_continua(
    flow: AbstractFlow, x: Float[Tensor, "points n d"], scale: float, *, antipodes: bool = False
) -> Continua:
    """Which equilibria belong to one connected set, and its dimension.

    Sets that come closer to one another than a thousandth of ``scale`` count as one, and a set that is smaller than a
    twentieth of it counts as one point.

    Args:
        flow: one weight instance.
        x: equilibria.
        scale: the size of the region that is looked at; one on the sphere.
        antipodes: take a state and its antipode as the same.

    Cost: one singular value decomposition per point. Points with a singular Jacobian are walked from one to the next,
    with a few decompositions per step.
    """
    space = _Space(flow, _rate(flow, x), scale)
    singular = (space.kernel(x)[1] > 0).nonzero().squeeze(-1)
    first, dimension = torch.arange(len(x), device=x.device), torch.zeros(len(x), dtype=torch.long, device=x.device)
    left = singular
    while len(left):
        members = _connected(space, x, left, antipodes=antipodes)
        first[members] = members.min()
        dimension[members] = _dimension(space, x[members[:1]])
        left = left[~torch.isin(left, members)]
    return Continua(first, dimension)


def _rate(flow: AbstractFlow, x: Tensor) -> float:
    """What a singular value is compared with; elsewhere the largest that was seen."""
    if isinstance(flow, AbstractSphereFlow):
        return float(flow.rate)
    return float(torch.linalg.matrix_norm(flow.jacobian(x), ord=2).max()) if len(x) else 0.0


@final
@dataclasses.dataclass(frozen=True)
class _Space:
    """A flow with the units in which singular values and lengths are small."""

    flow: AbstractFlow
    rate: float
    scale: float

    @property
    def step(self) -> float:
        return STEP * self.scale

    def kernel(self, x: Tensor) -> tuple[Float[Tensor, "points k k"], Int[Tensor, " points"]]:
        """Right singular vectors as rows, those of the kernel last, and how many these are."""
        _, values, vectors = torch.linalg.svd(self.flow.jacobian(x))
        return vectors, (values <= SINGULAR * self.rate).sum(dim=-1)

    def settled(self, x: Tensor, move: Float[Tensor, "points k"]) -> tuple[Tensor, Bool[Tensor, " points"]]:
        """The equilibria beside x + move, and where there is one: Newton's method that leaves the kernel alone."""
        start = x = self._moved(x, move)
        for _ in range(CORRECTIONS):
            pull = (self.flow.basis(x).mT @ self.flow.velocity(x).unsqueeze(-1)).flatten(1)
            inverse = torch.linalg.pinv(self.flow.jacobian(x), atol=SINGULAR * self.rate)
            x = self._moved(x, -(inverse @ pull.unsqueeze(-1)).squeeze(-1))
        near = torch.linalg.vector_norm((x - start).flatten(1), dim=-1) <= self.step
        return x, near & (self.flow.residual(x) <= RESIDUAL * self.rate * self.scale)

    def _moved(self, x: Tensor, move: Tensor) -> Tensor:
        basis = self.flow.basis(x)
        return self.flow.project(x + (basis @ move.reshape(*basis.shape[:-2], basis.shape[-1], 1)).squeeze(-1))


def _connected(space: _Space, x: Tensor, left: Tensor, *, antipodes: bool) -> Int[Tensor, " members"]:
    """The points among ``left`` that can be reached from the first of them."""
    members, others = left[:1], left[1:]
    nearest = torch.full((len(others),), torch.inf, dtype=x.dtype, device=x.device)
    while len(others):
        goals = torch.cat([x[members], -x[members]]) if antipodes else x[members]
        distance, goal = torch.cdist(x[others].flatten(1), goals.flatten(1)).min(dim=-1)
        nearer = (distance < 0.9 * nearest).nonzero().squeeze(-1)  # others failed from here before
        nearest = torch.minimum(nearest, distance)
        reached = nearer[_walk(space, x[others[nearer]], goals[goal[nearer]])]
        if not len(reached):
            break
        stay = torch.ones(len(others), dtype=torch.bool, device=x.device)
        stay[reached] = False
        members, others, nearest = torch.cat([members, others[reached]]), others[stay], nearest[stay]
    return members


def _walk(space: _Space, x: Tensor, goal: Tensor) -> Bool[Tensor, " points"]:
    """Which walks along equilibria reach their goals: steps in the kernel towards the goal, each one corrected."""
    arrived = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    going = torch.arange(len(x), device=x.device)
    for _ in range(WALK):
        gap = torch.linalg.vector_norm((goal[going] - x[going]).flatten(1), dim=-1)
        arrived[going] = gap < ARRIVED * space.step
        going = going[~arrived[going]]
        if not len(going):
            break
        point, found = space.settled(x[going], _towards(space, x[going], goal[going]))
        x = x.index_put((going,), torch.where(found[:, None, None], point, x[going]))
        going = going[found]
    return arrived


def _towards(space: _Space, x: Tensor, goal: Tensor) -> Float[Tensor, "points k"]:
    """The part of the way to the goal that lies in the kernel, at most one step of it."""
    vectors, count = space.kernel(x)
    inner = (space.flow.basis(x).mT @ (goal - x).unsqueeze(-1)).flatten(1)
    in_kernel = torch.arange(vectors.shape[-1], device=x.device) >= vectors.shape[-1] - count.unsqueeze(-1)
    share = (vectors @ inner.unsqueeze(-1)).squeeze(-1) * in_kernel
    # A goal straight across the bend of a curve has no part along it: any direction leads there.
    lost = torch.linalg.vector_norm(share, dim=-1) < 1e-3 * torch.linalg.vector_norm(inner, dim=-1)
    share[:, -1] = torch.where(lost & (count > 0), space.step, share[:, -1])
    move = (vectors.mT @ share.unsqueeze(-1)).squeeze(-1)
    length = torch.linalg.vector_norm(move, dim=-1, keepdim=True)
    return move * (space.step / length.clamp_min(space.step))


def _dimension(space: _Space, x: Float[Tensor, "one n d"]) -> int:
    """Independent directions in which equilibria continue from x, but no more than beside it.

    Where two curves cross there are two directions at the crossing, and one beside it.
    """
    vectors, count = space.kernel(x)
    kernel = vectors[0, vectors.shape[-1] - int(count[0]) :]
    moves = space.step * torch.cat([kernel, -kernel])
    point, found = space.settled(x.expand(len(moves), *x.shape[1:]), moves)
    way = (point - x).flatten(1)
    beside = found & (torch.linalg.vector_norm(way, dim=-1) > space.step / 2)
    if not bool(beside.any()):
        return 0
    rank = int(torch.linalg.matrix_rank(way[beside], rtol=0.3))
    return min(rank, int(space.kernel(point[beside])[1].min()))
