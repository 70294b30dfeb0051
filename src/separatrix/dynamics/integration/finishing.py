"""The end of a trajectory: from a state that moves slowly to a certified stable equilibrium beside it."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.arithmetic.linear_systems import solve_ex

from ..equilibria.clusters import by_count, cluster_means, find_clusters
from ..equilibria.polishing import polish
from ..equilibria.stability import cluster_stability, token_stability
from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere
from ..flows.sphere import angles
from .landing import SINGULAR, land

TOKEN_DISPLACEMENT = 0.15
"""Radians between a token and the equilibrium it is said to reach, which must be stable with contracting clusters."""

LEFT, NEAR = 1e-2, 1e-3
"""Share of a Newton step that a second one may ask for, and of the way that the first may be, to believe in it."""

LARGEST_SYSTEM = 2000
"""Unknowns of a Newton system; states with more separate tokens are followed by integration alone."""


@final
@dataclasses.dataclass(frozen=True)
class Finish:
    """Per element: the equilibrium beside the state (NaN if none), and whether it is stable or unstable for sure.

    ``doubt`` is for equilibria that form a continuum which attracts: how far ``point`` may lie from the one at which
    the motion ends; infinite for all others.
    """

    point: Float[Tensor, "batch n d"]
    found: Bool[Tensor, " batch"]
    stable: Bool[Tensor, " batch"]
    unstable: Bool[Tensor, " batch"]
    doubt: Float[Tensor, " batch"]

    def __getitem__(self, chosen: slice) -> Finish:
        return Finish(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))


@final
@dataclasses.dataclass(frozen=True)
class Arrivals:
    """States of relative speed ``ratio`` that have come a way of ``extent``; ``sizes`` as the caller gave them."""

    x: Float[Tensor, "batch n d"]
    ratio: Float[Tensor, " batch"]
    extent: Float[Tensor, " batch"]
    sizes: Float[Tensor, "batch n"] | None


class AbstractFinisher(abc.ABC):
    """What ends a trajectory before it has come to rest by itself."""

    @abc.abstractmethod
    def finish(self, flow: AbstractFlow, arrived: Arrivals) -> Finish:
        """Equilibria beside states that move slowly."""


@final
@dataclasses.dataclass(frozen=True)
class ClusterFinisher(AbstractFinisher):
    """On the sphere: tokens that are on their way together are taken as one, then Newton's method.

    Tokens closer than ``reach`` times the relative speed are taken to be on their way together. The number of clusters
    differs between elements, so elements with equal numbers are computed in one batch.
    """

    reach: float = 20.0

    def finish(self, flow: AbstractFlow, arrived: Arrivals) -> Finish:
        """The equilibrium of clusters beside each state, with its stability for all tokens."""
        flow, x, sizes = require_sphere(flow, "ClusterFinisher"), arrived.x, arrived.sizes
        point, verdicts = torch.full_like(x, torch.nan), x.new_zeros(3, len(x), dtype=torch.bool)
        if not flow.reducible:
            labels = torch.arange(x.shape[1], device=x.device).expand(x.shape[:2])
            count = torch.full((len(x),), x.shape[1], device=x.device)
        else:
            clusters = find_clusters(x, (self.reach * arrived.ratio).clamp(1e-3, 0.2))
            labels, count = clusters.labels, clusters.n_clusters
        for m, chosen in by_count(count):
            if m * (x.shape[-1] - 1) > LARGEST_SYSTEM:
                continue
            own = flow.select((len(x),), chosen)
            point[chosen], verdicts[:, chosen] = _finish_equal(
                own, x[chosen], labels[chosen], m, None if sizes is None else sizes[chosen]
            )
        found, stable, unstable = verdicts
        return Finish(point, found, stable, unstable, torch.full_like(arrived.ratio, torch.inf))


@final
@dataclasses.dataclass(frozen=True)
class NewtonFinisher(AbstractFinisher):
    """Anywhere: Newton's method, accepted within a few times the distance that speed and derivative predict.

    A slender spiral is slow on the sides of its ellipse, and there they predict too little: a distance is also accepted
    that is a small part of the way, if Newton's method shows that the flow is linear so far.
    """

    margin: float = 5.0

    def finish(self, flow: AbstractFlow, arrived: Arrivals) -> Finish:
        """The equilibrium beside each state, with its stability."""
        x = arrived.x
        if x.shape[1] * x.shape[2] > LARGEST_SYSTEM:
            nothing = torch.zeros(len(x), dtype=torch.bool, device=x.device)
            nowhere = torch.full_like(arrived.ratio, torch.inf)
            return Finish(torch.full_like(x, torch.nan), nothing, nothing, nothing, nowhere)
        size = torch.linalg.vector_norm(x, dim=-1).amax(dim=-1)
        distance = torch.maximum(arrived.ratio * arrived.extent, _distance_ahead(flow, x))
        distance = torch.maximum(distance, _sure_distance(flow, x, arrived.extent))
        polished = polish(flow, x, max_displacement=self.margin * distance + 1e-12 * size)
        safe = torch.where(polished.found[:, None, None], polished.point, x)
        stability = token_stability(flow, safe)
        found, point, doubt = polished.found, polished.point.clone(), torch.full_like(arrived.ratio, torch.inf)
        among = (found & stability.marginal).nonzero().squeeze(-1)
        if len(among):
            landing = land(flow.select((len(x),), among), x[among], safe[among])
            point[among], doubt[among] = landing.point, landing.doubt
        return Finish(point, found, found & stability.stable, found & (stability.index > 0), doubt)


def _distance_ahead(flow: AbstractFlow, x: Tensor) -> Float[Tensor, " batch"]:
    """|f|^2 / |f' f|, the distance to an equilibrium that is approached along f; the ratio may be some steps old."""
    velocity = flow.velocity(x)
    speed = torch.linalg.vector_norm(velocity.flatten(1), dim=-1)
    change = torch.linalg.vector_norm(flow.jvp(x, velocity).flatten(1), dim=-1)
    return (speed * (speed / change)).nan_to_num(nan=0.0, posinf=0.0)


def _sure_distance(flow: AbstractFlow, x: Tensor, extent: Tensor) -> Float[Tensor, " batch"]:
    """The length of a Newton step after which hardly anything is left to do; zero where it is long or leaves much.

    Among equilibria that form a continuum the least step counts as well: elimination leads anywhere along the
    continuum, and a slender spiral onto it would never be believed.
    """
    basis, jacobian = flow.basis(x), flow.jacobian(x)

    def eliminated(pull: Tensor) -> Tensor:
        return solve_ex(jacobian, -pull)[0]

    def least(pull: Tensor) -> Tensor:
        regular = torch.isfinite(jacobian).flatten(1).all(dim=-1)[:, None, None]
        inverse = torch.linalg.pinv(torch.where(regular, jacobian, 0.0), rtol=SINGULAR)
        return torch.where(regular, -(inverse @ pull.unsqueeze(-1)), torch.nan).squeeze(-1)

    def sure(solve: Callable[[Tensor], Tensor]) -> Tensor:
        first = solve((basis.mT @ flow.velocity(x).unsqueeze(-1)).flatten(1))
        move = (basis @ first.reshape(*basis.shape[:-2], basis.shape[-1], 1)).squeeze(-1)
        after = solve((basis.mT @ flow.velocity(flow.project(x + move)).unsqueeze(-1)).flatten(1))
        length, left = torch.linalg.vector_norm(first, dim=-1), torch.linalg.vector_norm(after, dim=-1)
        return torch.where((left <= LEFT * length) & (length <= NEAR * extent), length, 0.0)

    return torch.maximum(sure(eliminated), sure(least))


def _finish_equal(
    flow: AbstractSphereFlow, x: Tensor, labels: Tensor, m: int, rows: Tensor | None
) -> tuple[Tensor, Tensor]:
    w, sizes = cluster_means(x, labels, m, rows)
    if flow.reducible:
        polished = polish(flow, w, sizes, max_displacement=TOKEN_DISPLACEMENT)
    else:
        polished = polish(flow, x, max_displacement=TOKEN_DISPLACEMENT)
    safe = torch.where(polished.found[:, None, None], polished.point, w)
    tokens = safe.gather(1, labels.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
    found = polished.found & (angles(tokens, x).amax(dim=-1) < TOKEN_DISPLACEMENT)
    stability = cluster_stability(flow, safe, sizes) if flow.reducible else token_stability(flow, safe)
    if rows is not None:  # the tokens of one row cannot part
        stability = dataclasses.replace(stability, sizes=cluster_means(x, labels, m, None)[1])
    stable = found & stability.stable
    unstable = found & ~stability.stable & ~stability.marginal
    return torch.where(found[:, None, None], tokens, torch.nan), torch.stack([found, stable, unstable])


def nudge(flow: AbstractFlow, x: Float[Tensor, "batch n d"], size: Tensor | float) -> Float[Tensor, "batch n d"]:
    """A fixed small tangent perturbation, the same for an element whatever else is in its batch.

    Its directions are cosines of incommensurable multiples of the indices, so that it has a component along every
    unstable direction without drawing random numbers.
    """
    n, d = x.shape[-2:]
    i = torch.arange(n, dtype=x.dtype, device=x.device).unsqueeze(-1)
    j = torch.arange(d, dtype=x.dtype, device=x.device)
    pattern = torch.cos(1.0 + 12.9898 * i + 78.233 * j + 3.7 * i * j)
    basis = flow.basis(x)
    along = (basis @ (basis.mT @ pattern.unsqueeze(-1))).squeeze(-1)
    return flow.project(x + torch.as_tensor(size, dtype=x.dtype, device=x.device)[..., None, None] * along)


def leave(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    saddle: Float[Tensor, "batch n d"],
    size: Float[Tensor, " batch"],
    otherwise: Float[Tensor, "batch n d"],
) -> Float[Tensor, "batch n d"]:
    """States beside saddles, on the side on which the trajectories that came near them stand.

    The part of x - saddle that grows is enlarged to ``size``, and the rest is left. So a trajectory does not cross what
    it could not cross by itself, as the boundary of positive populations; ``otherwise`` where nothing of it grows.

    Cost: the eigenvectors of a dense Jacobian, O((n d)^3) per element.
    """
    basis = flow.basis(saddle)
    away = (basis.mT @ (x - saddle).unsqueeze(-1)).flatten(1)
    values, vectors = eig(flow.jacobian(saddle))
    parts = solve_ex(vectors, away.to(vectors.dtype).unsqueeze(-1))[0]
    grows = (vectors @ torch.where(values.real.unsqueeze(-1) > 0, parts, 0.0)).real.squeeze(-1)
    largest = grows.abs().amax(dim=-1)
    known = torch.isfinite(largest) & (largest > 0)
    more = (size / torch.where(known, largest, 1.0) - 1).clamp_min(0)
    turn = (basis @ (more.unsqueeze(-1) * grows).reshape(*basis.shape[:-2], basis.shape[-1], 1)).squeeze(-1)
    return torch.where(known[:, None, None], flow.project(x + turn), otherwise)
