"""From a trajectory that came back to a certified orbit: tokens that move together as one, Newton, multipliers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...equilibria.clusters import by_count, cluster_means, find_clusters
from ...flows.base import AbstractFlow, AbstractSphereFlow, require_sphere
from .closed import Closed, across, directions, lasting, length
from .collocation import collocate
from .floquet import Floquet, certificates
from .mesh import guessed
from .newton import Blocks
from .points import radau
from .shooting import parting_maps, shoot, shoot_stiff, smallest_period
from .spirals import fall

TOGETHER = 0.05
"""Tokens closer than this are taken to move together; the transversal multipliers say whether they do."""

LARGEST_ORBIT = 200
"""Unknowns of an orbit that is closed while a trajectory is followed."""

LARGEST_COLLOCATION = 60
"""Coordinates of a state up to which all of the orbit is solved at once; above, shooting needs less."""

STAYS = 10.0
"""An orbit that lies further from the state than this many times its mismatch was approached, and not passed."""
SETTLED = 1e-4
"""Share of its extent by which a neutral orbit may lie beside the state: Newton's method closes any one of the family,
so that a motion that is still settling would be given a neighbour of the orbit that it settles on."""
BESIDE = 1e-8
"""Share of its length by which an orbit of a family must lie beside the one that is approached to be closed again."""
REACHED = 0.02
"""Share of its extent by which a stable orbit may lie beside the state: Newton's method may jump to an orbit from whose
basin the motion is parted, as by an unstable cycle between them."""
LOOP, PLACED = 1e-3, 0.05
"""Largest mismatch of an orbit, and largest doubt of its place, as shares of its extent."""
FOLD = 1e-6
"""Distance of a multiplier from 1 below which a stable orbit cannot be told from one that is about to vanish."""


@final
@dataclasses.dataclass(frozen=True)
class Orbits:
    """Per element: a state on the closed orbit (NaN where none was found), its certificate, and the cost.

    ``certificates``, ``stays`` and ``reached`` go by place in the batch; ``stays`` names the orbits on which the
    trajectory already was before they were closed, as in a family that fills the space, ``reached`` those that it was
    near. ``rest`` is the equilibrium to which a motion
    falls in turns that do not close (NaN elsewhere).
    """

    point: Float[Tensor, "batch n d"]
    certificates: dict[int, Floquet]
    stays: set[int]
    reached: set[int]
    evaluations: Int[Tensor, " batch"]
    rest: Float[Tensor, "batch n d"]


def close_orbits(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    period: Float[Tensor, " batch"],
    sizes: Float[Tensor, "batch n"] | None = None,
) -> Orbits:
    """States on closed orbits and their certificates.

    Tokens that move together are reduced to one, where the flow allows it, so that the cost does not depend on their
    number. ``sizes`` say how many tokens each row stands for.
    """
    evaluations = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    orbits = Orbits(torch.full_like(x, torch.nan), {}, set(), set(), evaluations, torch.full_like(x, torch.nan))
    if not (isinstance(flow, AbstractSphereFlow) and flow.reducible):
        if x.shape[1] * x.shape[2] <= LARGEST_ORBIT:
            closed, split = _closed(flow, x, period, None)
            _enter(orbits, flow, closed, closed.point, split, torch.ones_like(x[..., 0]), range(len(x)))
            open_ = torch.tensor([place not in orbits.certificates for place in range(len(x))], device=x.device)
            at = open_.nonzero().squeeze(-1)
            if len(at):
                orbits.rest[at], spent = fall(flow.select((len(x),), at), x[at], period[at])
                evaluations[at] += spent
        return orbits
    clusters = find_clusters(x, TOGETHER)
    for m, chosen in by_count(clusters.n_clusters):
        if m * (x.shape[-1] - 1) > LARGEST_ORBIT:
            continue
        labels = clusters.labels[chosen]
        w, counts = cluster_means(x[chosen], labels, m, None if sizes is None else sizes[chosen])
        own = flow.select((len(x),), chosen).with_sizes(counts)
        closed, split = _closed(own, w, period[chosen], counts)
        tokens = closed.point.gather(1, labels.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        _enter(orbits, own, closed, tokens, split, counts, chosen.tolist())
    return orbits


def parting_blocks(flow: AbstractFlow, x: Float[Tensor, "batch m d"]) -> Float[Tensor, "batch m d d"]:
    """Derivative of the velocity of one half of each cluster when its halves part: to first order nobody else notices.

    In coordinates of the whole space, as they are carried around an orbit.
    """
    flow = require_sphere(flow, "parting clusters")
    assert flow.sizes is not None
    sizes = flow.sizes.expand(x.shape[:-1])
    halves = flow.with_sizes(torch.cat([sizes, sizes], dim=-1) / 2)
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    parting = eye[:, None, None].expand(-1, *x.shape)
    moved = halves.jvp(torch.cat([x, x], dim=-2), torch.cat([parting, -parting], dim=-2))
    return moved[..., : x.shape[-2], :].movedim(0, -1)


def _closed(
    flow: AbstractFlow, x: Tensor, period: Tensor, sizes: Tensor | None
) -> tuple[Closed, Float[Tensor, "batch m d d"]]:
    """By collocation, for slow orbits at other points; by shooting where the state is large or the motion too stiff.

    Returned with the maps of parting halves.
    """
    blocks = parting_blocks if sizes is not None and bool((sizes > 1).any()) else None
    if x.shape[1] * x.shape[2] > LARGEST_COLLOCATION:
        return _shot(flow, x, period, blocks)
    path, spent = guessed(flow, x, period)
    if bool(path.stiff.any()):  # an orbit with jumps is closed from elsewhere on it
        x = path.slowest(flow, x, x.shape[1:])
        path, more = guessed(flow, x, period)
        spent = spent + more
    closed, split = collocate(flow, x, period, blocks, path=path)
    closed.evaluations.add_(spent)
    again = (closed.unresolved & ~closed.stiff).nonzero().squeeze(-1)
    if len(again):
        other, maps = collocate(flow.select((len(x),), again), x[again], period[again], blocks, points=radau())
        split[again] = maps
        _take(closed, again, other)
    again = (closed.unresolved & closed.stiff & (blocks is None)).nonzero().squeeze(-1)
    if len(again):
        _take(closed, again, shoot_stiff(flow.select((len(x),), again), x[again], period[again]))
    return _shortest(flow, *_of_its_family(flow, x, closed, split, blocks), blocks)


def _of_its_family(
    flow: AbstractFlow, x: Tensor, closed: Closed, split: Tensor, blocks: Blocks | None
) -> tuple[Closed, Float[Tensor, "batch m d d"]]:
    """Where orbits fill a family, the one to which the state x is on its way, instead of the nearest to it.

    What decays is taken out of the way from the orbit that was found to x, what stays is kept (``lasting``), and the
    orbit there is closed, with the period by which the neighbour differs: of a way e there remains an error of the
    order of e^2.
    """
    some = closed.found.nonzero().squeeze(-1)
    if not len(some):
        return closed, split
    own, point = flow.select((len(x),), some), closed.point[some]
    every = directions(own, point)
    way = torch.einsum("bknd,bnd->bk", every, x[some] - point)
    stays = lasting(closed.monodromy[some], way)
    beside = stays.norm(dim=-1) > BESIDE * length(own, point, closed.period[some])
    at = some[beside]
    if not len(at):
        return closed, split
    start = flow.project(point[beside] + torch.einsum("bk,bknd->bnd", stays[beside], every[beside]))
    late = torch.einsum("bkl,bl->bk", closed.monodromy[at], stays[beside]) - stays[beside]
    pace = torch.einsum("bknd,bnd->bk", every, own.velocity(point))[beside]
    period = closed.period[at] - (late * pace).sum(dim=-1) / (pace**2).sum(dim=-1)
    other, maps = collocate(flow.select((len(x),), at), start, period, blocks)
    _take_found(closed, split, at, other, maps)
    return closed, split


def _take(closed: Closed, at: Tensor, other: Closed) -> None:
    """Put other orbits in their places; what both cost is added."""
    for field in dataclasses.fields(Closed):
        if field.name != "evaluations":
            getattr(closed, field.name)[at] = getattr(other, field.name)
    closed.evaluations[at] += other.evaluations


def _shortest(
    flow: AbstractFlow, closed: Closed, split: Tensor, blocks: Blocks | None
) -> tuple[Closed, Float[Tensor, "batch m d d"]]:
    """The orbits passed once: a trajectory that falls from side to side of its orbit is nearer after two turns."""
    some = closed.found.nonzero().squeeze(-1)
    if not len(some):
        return closed, split
    own = flow.select((len(closed.period),), some)
    shorter, spent = smallest_period(own, closed.point[some], closed.period[some])
    closed.evaluations[some] += spent
    again = shorter < 0.9 * closed.period[some]
    if bool(again.any()):
        at = some[again]
        once, maps = collocate(flow.select((len(closed.period),), at), closed.point[at], shorter[again], blocks)
        _take_found(closed, split, at, once, maps)
    return closed, split


def _take_found(closed: Closed, split: Tensor, at: Tensor, other: Closed, maps: Tensor) -> None:
    """Put those of other orbits that were found in their places; how far the given state was off stays as it is."""
    kept = other.found
    at = at[kept]
    mismatch, moved = closed.mismatch[at], closed.moved[at]
    split[at] = maps[kept]
    _take(closed, at, Closed(**{field.name: getattr(other, field.name)[kept] for field in dataclasses.fields(Closed)}))
    closed.mismatch[at], closed.moved[at] = mismatch, moved


def _shot(
    flow: AbstractFlow, x: Tensor, period: Tensor, blocks: Blocks | None
) -> tuple[Closed, Float[Tensor, "batch m d d"]]:
    closed = shoot(flow, x, period)
    split = x.new_zeros(len(x), 0 if blocks is None else x.shape[1], x.shape[-1], x.shape[-1])
    some = closed.found.nonzero().squeeze(-1)
    if blocks is not None and len(some):
        own = require_sphere(flow.select((len(x),), some), "parting clusters")
        split[some] = parting_maps(own, closed.point[some], closed.period[some])
    return closed, split


def _enter(
    orbits: Orbits,
    flow: AbstractFlow,
    closed: Closed,
    tokens: Tensor,
    split: Tensor,
    sizes: Tensor,
    places: Sequence[int],
) -> None:
    """Certificates of what was found; the multipliers of parting halves are those on the tangent spaces."""
    where = torch.tensor(list(places), dtype=torch.int64, device=tokens.device)
    orbits.point[where], orbits.evaluations[where] = tokens, closed.evaluations
    some = closed.found.nonzero().squeeze(-1)
    if not len(some):
        return
    own, point = flow.select((len(tokens),), some), closed.point[some]
    section = across(own, point, closed.monodromy[some])
    basis = own.basis(point)
    parting = basis.mT @ split[some] @ basis if split.shape[1] else point.new_zeros(*point.shape[:2], 0, 0)
    safe = torch.isfinite(section).flatten(1).all(dim=-1) & torch.isfinite(parting).flatten(1).all(dim=-1)
    some = some[safe]
    found = certificates(
        closed.period[some], section[safe], parting[safe], sizes[some], closed.residual[some], closed.error[some]
    )
    speed = torch.linalg.vector_norm(own.velocity(point)[safe].flatten(1), dim=-1)
    extent = speed * closed.period[some] / torch.pi
    moved = closed.moved[some]
    stays = ((moved <= STAYS * closed.mismatch[some]) & (moved <= SETTLED * extent)).tolist()
    near = (moved <= REACHED * extent).tolist()
    marks = zip(where[some].tolist(), found, stays, near, extent.tolist(), strict=True)
    for place, floquet, stayed, reached, size in marks:
        if not _is_loop(floquet, size):
            continue
        orbits.certificates[place] = floquet
        if stayed:
            orbits.stays.add(place)
        if reached:
            orbits.reached.add(place)


def _is_loop(floquet: Floquet, extent: float) -> bool:
    """Whether the error of an orbit is small against the orbit itself, not only against the state.

    A motion that nearly stands still returns to itself in any time. The place of a stable orbit is known to the
    mismatch over the distance of its multipliers from 1; one that is neutral in some direction has neighbours all
    around, and one of them is as good as another.
    """
    if not floquet.residual <= LOOP * extent:
        return False
    others = torch.cat([floquet.quotient[1:], floquet.transversal[floquet.sizes > 1].flatten()])
    if not floquet.stable or not len(others):
        return True
    nearest = float((1 - others).abs().min())
    return nearest > FOLD and floquet.residual <= PLACED * extent * nearest


def certificate(flow: AbstractFlow, closed: Closed) -> Floquet:
    """Of one orbit, every token for itself."""
    section, n = across(flow, closed.point, closed.monodromy), closed.point.shape[1]
    parting, ones = section.new_zeros(1, n, 0, 0), section.new_ones(1, n)
    return certificates(closed.period, section, parting, ones, closed.residual, closed.error)[0]
