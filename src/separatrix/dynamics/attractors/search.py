"""Find equilibria without following tokens: random clusters are relaxed, and sent through deflated Newton.

Deflation multiplies the velocity by a factor that is infinite at every equilibrium already known, so that Newton's
method finds another one from the same start. The step of the deflated problem is Newton's step times a number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_tensor, require_integer
from separatrix.core.arithmetic.linear_systems import solve_ex

from ..equilibria.continua import find_continua
from ..equilibria.equilibrium import Equilibrium
from ..equilibria.polishing import STEP_LIMIT, polish
from ..flows.base import AbstractFlow, AbstractSphereFlow, require_autonomous, require_flow
from ..flows.sphere import random_tokens
from ..integration.integrate import integrate
from .classification import classify

SAME_POINT = 1e-6
RELAX_STEPS = 36
"""Steps after which a motion off the sphere is no longer waited for: Newton's method goes on from its start."""


def find_equilibria(
    flow: AbstractFlow,
    n_tokens: int | None = None,
    *,
    generator: torch.Generator | None = None,
    starts: object | None = None,
    max_clusters: int = 2,
    sizes: Iterable[Sequence[int]] | None = None,
    n_random: int = 32,
    rounds: int = 4,
    known: Iterable[Equilibrium] = (),
) -> list[Equilibrium]:
    """Equilibria, stable or not: on the sphere of at most ``max_clusters`` clusters, one of each pair of antipodes.

    On the sphere, for each way to divide the tokens, random clusters are relaxed along the cluster flow (which finds
    the stable ones) and random clusters are sent through deflated Newton (which finds the others). What is found is
    complete only with a probability that grows with ``n_random`` and ``rounds``. Elsewhere the same is done with the
    ``starts``.

    Equilibria that form a connected set, such as a circle, are reported once, by one of them, whose ``dimension`` is
    that of the set (for fixed clusters); it is 0 for an equilibrium that is alone.

    Args:
        flow: one weight instance; on the sphere, without mask and bias.
        n_tokens: number of tokens; on the sphere.
        generator: of the random starts; on the sphere.
        starts: states (batch, n, d) from which to look, for flows that are not on the sphere.
        max_clusters: largest number of clusters.
        sizes: divisions of the tokens to look at, instead of all into at most ``max_clusters`` parts.
        n_random: random starts per division and round.
        rounds: deflated searches per division; a round that finds nothing new is the last.
        known: equilibria found otherwise, such as the ends of a census; they are not reported again.

    Cost: O(n_random m^3 d^3) per Newton step and division; connected sets cost as much again.
    """
    require_flow(flow)
    require_autonomous(flow, "find_equilibria")
    for value, name in ((max_clusters, "max_clusters"), (n_random, "n_random"), (rounds, "rounds")):
        require_integer(value, name, at_least=1)
    if not isinstance(flow, AbstractSphereFlow):
        if starts is None or flow.instances:
            raise InvalidInput("find_equilibria off the sphere needs starts (batch, n, d) and one weight instance.")
        return _search_elsewhere(flow.to(torch.float64), starts, rounds, known)
    if not flow.reducible or flow.instances:
        raise InvalidInput("find_equilibria needs one weight instance without mask and bias.")
    if starts is not None or n_tokens is None or generator is None:
        raise InvalidInput("find_equilibria on the sphere draws its own starts: give n_tokens and generator instead.")
    require_integer(n_tokens, "n_tokens", at_least=1)
    flow = flow.to(torch.float64).with_sizes(None)
    chosen = (
        list(sizes) if sizes is not None else [p for m in range(1, max_clusters + 1) for p in partitions(n_tokens, m)]
    )
    found: list[Equilibrium] = []
    before = [item for item in known if sum(item.sizes) == n_tokens]
    seen = [_tokens(item) for item in before]
    for division in chosen:
        if sum(division) != n_tokens:
            raise InvalidInput(f"sizes must sum to n_tokens = {n_tokens}; got {tuple(division)}.")
        counts = torch.tensor(division, dtype=torch.float64)
        for points in _search(flow, counts, generator, n_random, rounds):
            states = points.repeat_interleave(counts.long(), dim=1)
            for record, state in zip(classify(flow, states, cycles=False), states, strict=True):
                if record.is_equilibrium and not any(_same(state, other) for other in seen):
                    seen.append(state)
                    found.append(record)
    return _one_of_each(flow, before, found, 1.0)


def partitions(total: int, parts: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """All ways to write ``total`` as ``parts`` positive numbers in descending order.

    Example:
        >>> list(partitions(5, 2))
        [(4, 1), (3, 2)]
    """
    require_integer(total, "total", at_least=0)
    require_integer(parts, "parts", at_least=1)
    return _partitions(total, parts, total if largest is None else require_integer(largest, "largest", at_least=0))


def _partitions(total: int, parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        if 1 <= total <= largest:
            yield (total,)
        return
    for first in range(min(largest, total - parts + 1), 0, -1):
        for rest in _partitions(total - first, parts - 1, first):
            yield (first, *rest)


def _search_elsewhere(
    flow: AbstractFlow, starts: object, rounds: int, known: Iterable[Equilibrium]
) -> list[Equilibrium]:
    """Ends of the motion from the starts, then round after round of deflated Newton from the same starts."""
    x = as_tensor(starts, "starts").double()
    if x.ndim < 3:
        raise ShapeError(f"starts must have shape (batch, n, d); got {tuple(x.shape)}.")
    x = x.reshape(-1, *x.shape[-2:])
    before = list(known)
    seen = [_tokens(item) for item in before]
    run = integrate(flow, x, max_steps=RELAX_STEPS)
    points = _distinct(run.final[run.converged], seen, antipodes=False)
    for _ in range(rounds):
        near = deflated_newton(flow, x, torch.cat([points, *(item.unsqueeze(0) for item in seen)]))
        polished = polish(flow, near)
        new = _distinct(polished.point[polished.found], [*points, *seen], antipodes=False)
        if not len(new):
            break
        points = torch.cat([points, new])
    found = classify(flow, points, cycles=False) if len(points) else []
    return _one_of_each(flow, before, [item for item in found if item.is_equilibrium], _span(x))


def _one_of_each(
    flow: AbstractFlow, before: list[Equilibrium], found: list[Equilibrium], scale: float
) -> list[Equilibrium]:
    """The first of each connected set, with its dimension; sets of which one was known before are left out.

    Equilibria are compared where the same tokens stand together, and moved with their clusters.
    """
    on_sphere, groups = isinstance(flow, AbstractSphereFlow), dict[tuple[int, ...], list[int]]()
    every, kept = [*before, *found], dict[int, Equilibrium]()
    for place, item in enumerate(every):
        groups.setdefault(tuple(item.labels.tolist()), []).append(place)
    for places in groups.values():
        points = torch.stack([every[place].clusters for place in places])
        sizes = torch.tensor(every[places[0]].sizes, dtype=points.dtype)
        reduced = flow.with_sizes(sizes) if isinstance(flow, AbstractSphereFlow) else flow
        continua = find_continua(reduced, points, scale, antipodes=on_sphere)
        for row in continua.first.unique().tolist():
            kept[places[row]] = dataclasses.replace(every[places[row]], dimension=int(continua.dimension[row]))
    return [kept[place] for place in sorted(kept) if place >= len(before)]


def _span(x: Float[Tensor, "batch n d"]) -> float:
    """How far the starts lie apart."""
    return float(torch.linalg.vector_norm(x - x.mean(dim=0), dim=-1).max()) or 1.0


def _search(
    flow: AbstractSphereFlow, sizes: Tensor, generator: torch.Generator, n_random: int, rounds: int
) -> Iterator[Float[Tensor, "found m d"]]:
    """Points of one division of the tokens: relaxed first, then round after round of deflated Newton."""
    reduced, m = flow.with_sizes(sizes), len(sizes)
    starts = random_tokens(m, flow.dim, n_random, generator=generator)
    relaxed = integrate(reduced, starts, merging=False)
    points = _distinct(relaxed.final[relaxed.converged], [])
    if len(points):
        yield points
    for _ in range(rounds):
        starts = random_tokens(m, flow.dim, n_random, generator=generator)
        near = deflated_newton(reduced, starts, points)
        polished = polish(reduced, near, max_displacement=0.5)
        new = _distinct(polished.point[polished.found], list(points))
        if not len(new):
            return
        points = torch.cat([points, new])
        yield new


def deflated_newton(
    flow: AbstractFlow, w: Float[Tensor, "batch m d"], known: Float[Tensor, "found m d"], steps: int = 40
) -> Float[Tensor, "batch m d"]:
    """Newton steps towards equilibria other than the known points (and, on the sphere, their antipodes)."""
    on_sphere = isinstance(flow, AbstractSphereFlow)
    known = torch.cat([known, -known]) if on_sphere else known
    longest = STEP_LIMIT if on_sphere else _span(w)
    for _ in range(steps):
        basis = flow.basis(w)
        pull = (basis.mT @ flow.velocity(w).unsqueeze(-1)).flatten(-3)
        jacobian = flow.jacobian(w)
        scale = 1e-12 * jacobian.abs().amax(dim=(-2, -1), keepdim=True).clamp_min(1e-150)
        eye = torch.eye(jacobian.shape[-1], dtype=w.dtype, device=w.device)
        move, _ = solve_ex(jacobian + scale * eye, -pull)  # a state that is lost becomes NaN
        turn = (basis @ move.reshape(*w.shape[:-1], -1, 1)).squeeze(-1)
        turn = turn / (1 - _log_factor_slope(w, turn, known))[:, None, None]
        largest = torch.linalg.vector_norm(turn, dim=-1).amax(dim=-1)[:, None, None]
        w = flow.project(w + turn * (longest / largest.clamp_min(longest)))
    return w


def _log_factor_slope(w: Tensor, turn: Tensor, known: Tensor) -> Tensor:
    """Derivative along ``turn`` of the logarithm of the product of 1 + 1 / distance^2 over known points."""
    if not len(known):
        return torch.zeros(len(w), dtype=w.dtype, device=w.device)
    difference = w.unsqueeze(1) - known
    squared = difference.square().sum(dim=(-2, -1)).clamp_min(1e-30)
    along = (difference * turn.unsqueeze(1)).sum(dim=(-2, -1))
    slope = (-2 * along / squared / (1 + squared)).sum(dim=1)
    return torch.where((1 - slope).abs() < 1e-3, torch.zeros_like(slope), slope)


def _distinct(points: Tensor, known: list[Tensor], *, antipodes: bool = True) -> Tensor:
    """The points that differ from one another and from the known ones, modulo antipode where asked."""
    new: list[Tensor] = []
    for point in points:
        if not any(_same(point, other, antipodes=antipodes) for other in (*known, *new)):
            new.append(point)
    return torch.stack(new) if new else points[:0]


def _same(a: Tensor, b: Tensor, *, antipodes: bool = True) -> bool:
    near = SAME_POINT * max(1.0, float(a.abs().max()))
    return bool((a - b).abs().max() < near) or (antipodes and bool((a + b).abs().max() < near))


def _tokens(record: Equilibrium) -> Tensor:
    return record.clusters[record.labels]
