"""Classify end states: which equilibrium it is, and whether it is stable, with certificates.

The route is independent of the closed forms in ``theory``: tokens are clustered, the clusters polished by Newton's
method, and stability is read off derivatives of the cluster flow. Source: altafini2025, sections 4 to 6; a
"1-clustering" of its Example 2 cannot rest and is reported as not converged.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import ShapeError, as_tensor, require_flags, require_kind

from ..cycles.limit_cycles import cycles_through
from ..equilibria.clusters import by_count, find_clusters
from ..equilibria.equilibrium import Equilibrium
from ..equilibria.polishing import Polished, polish
from ..equilibria.stability import ClusterStability, token_stability
from ..flows.base import (
    AbstractFlow,
    AbstractSphereFlow,
    common_axes,
    require_autonomous,
    require_flow,
    require_rate,
)
from ..flows.fit import check_motion
from ..flows.sphere import check_tokens
from ..integration.orbits.floquet import Floquet
from .evidence import Tolerances, gather_evidence


def classify(
    flow: AbstractFlow,
    states: object,
    *,
    tolerances: Tolerances | None = None,
    cycles: bool = True,
    normalise: bool = False,
) -> list[Equilibrium]:
    """What each state is, one record per element of the batch (a list of one for a single state).

    Args:
        flow: the flow of the tokens; its weights broadcast against the batch.
        states: (..., n, d), as ``integrate(...).final``.
        tolerances: thresholds other than the standard ones.
        cycles: follow states that do not rest and look for a periodic motion.
        normalise: divide tokens by their lengths instead of refusing lengths other than one.

    Returns:
        Records whose ``kind`` is consensus, bipartite, clustering, polygonal, cycle, slow (hardly moves, and no
        equilibrium is nearby) or not converged; off the sphere equilibrium, cycle or not converged. Cycles carry their
        period and Floquet multipliers, and are stable or not by these. A state that is not finite, such as the end of
        a motion that failed, is not converged, with a residual of NaN.

    Cost: O(m^3 d^3) for m clusters, whatever the number of tokens; elements with equal m are computed together.

    Example:
        >>> import torch
        >>> from separatrix.dynamics import AttentionFlow, classify
        >>> flow = AttentionFlow.from_coupling(torch.eye(2), torch.diag(torch.tensor([2.0, 1.0])))
        >>> [item.kind for item in classify(flow, torch.tensor([[[1.0, 0.0]] * 3]))]
        ['consensus']
    """
    require_flow(flow)
    require_flags(cycles=cycles, normalise=normalise)
    limits = Tolerances() if tolerances is None else tolerances
    require_kind(limits, "tolerances", Tolerances, "a Tolerances object or None")
    require_autonomous(flow, "classify")
    given = as_tensor(states, "states", finite=False)
    if given.ndim >= 2 and not bool(torch.isfinite(given).all()):
        return _classify_beside_lost(flow, given, limits, cycles=cycles, normalise=normalise)
    if not isinstance(flow, AbstractSphereFlow):
        return _classify_elsewhere(flow, states, limits, cycles=cycles)
    require_rate(flow)
    tokens = check_tokens(states, "states", normalised=normalise).double()
    if tokens.shape[-1] != flow.dim:
        raise ShapeError(f"states must have tokens of dimension {flow.dim}; got shape {tuple(tokens.shape)}.")
    shape = common_axes(flow, tokens, "states")
    x = tokens.expand(*shape, *tokens.shape[-2:]).reshape(-1, *tokens.shape[-2:])
    whole, grouping = flow.to(torch.float64), find_clusters(x, limits.distance)
    sizes = None if whole.sizes is None else whole.sizes.expand(*(shape or (1,)), x.shape[1]).reshape(len(x), -1)
    whole = whole if sizes is None else whole.with_sizes(None)
    records: dict[int, Equilibrium] = {}
    for m, chosen in by_count(grouping.n_clusters):
        own, rows = whole.select(shape or (1,), chosen), None if sizes is None else sizes[chosen]
        evidence = gather_evidence(own, x[chosen], grouping.labels[chosen], m, rows, limits)
        gaps = grouping.gap[chosen]
        for row, place in enumerate(chosen.tolist()):
            records[place] = evidence.record(row, grouping.labels[place], float(gaps[row]), limits)
    if cycles:
        records |= _cycles(whole, shape or (1,), x, sizes, records)
    return [records[place] for place in range(len(x))]


def _classify_beside_lost(
    flow: AbstractFlow, states: Tensor, limits: Tolerances, *, cycles: bool, normalise: bool
) -> list[Equilibrium]:
    """The records of a batch of which some elements are not finite: these by themselves, the others as ever."""
    shape = common_axes(flow, states, "states") or (1,)
    x = states.expand(*shape, *states.shape[-2:]).reshape(-1, *states.shape[-2:])
    kept = torch.isfinite(x).flatten(1).all(dim=-1).nonzero().squeeze(-1)
    records = {place: _lost(state) for place, state in enumerate(x)}
    if len(kept):
        own = flow.select(shape, kept)
        found = classify(own, x[kept], tolerances=limits, cycles=cycles, normalise=normalise)
        records |= dict(zip(kept.tolist(), found, strict=True))
    return [records[place] for place in range(len(x))]


def _lost(state: Float[Tensor, "n d"]) -> Equilibrium:
    """The record of a state that is not finite."""
    tokens = len(state)
    return Equilibrium(
        kind="not converged",
        sizes=(1,) * tokens,
        eigenvector=None,
        eigenspace=(),
        sign=None,
        stable=False,
        marginal=False,
        index=None,
        quotient_abscissa=math.nan,
        transversal_abscissa=math.nan,
        residual=math.nan,
        displacement=math.nan,
        gap=math.nan,
        clusters=state.double(),
        labels=torch.arange(tokens, device=state.device),
        multipliers=torch.full((tokens,), torch.nan, dtype=torch.float64, device=state.device),
    )


def as_cycle(record: Equilibrium, floquet: Floquet) -> Equilibrium:
    """The record of a state that turns for ever, with the certificate of its orbit."""
    return dataclasses.replace(
        record,
        kind="cycle",
        period=floquet.period,
        floquet=floquet.multipliers,
        stable=floquet.stable,
        marginal=floquet.marginal,
        index=floquet.index,
        quotient_abscissa=floquet.quotient_abscissa,
        transversal_abscissa=floquet.transversal_abscissa,
    )


def _classify_elsewhere(flow: AbstractFlow, states: object, limits: Tolerances, *, cycles: bool) -> list[Equilibrium]:
    """Off the sphere: an equilibrium beside the state, within a share of its size, or a cycle through it."""
    x = as_tensor(states, "states").double()
    if x.ndim < 2 or not x.shape[-2] * x.shape[-1]:
        raise ShapeError(f"states must have shape (..., n, d), with n = 1 for a plain vector; got {tuple(x.shape)}.")
    shape = common_axes(flow, x, "states") or (1,)
    flat, double = x.expand(*shape, *x.shape[-2:]).reshape(-1, *x.shape[-2:]), flow.to(torch.float64)
    if len(flat):
        first = double.select(shape, torch.zeros(1, dtype=torch.long, device=x.device))
        check_motion(first, flat[:1], derivative=True)
    double = double.select(shape, torch.arange(len(flat), device=x.device))
    size = torch.linalg.vector_norm(flat, dim=-1).amax(dim=-1)
    polished = polish(double, flat, max_displacement=limits.displacement * size + limits.distance)
    point = torch.where(polished.found[:, None, None], polished.point, flat)
    stability = token_stability(double, point)
    records = {
        place: _record_elsewhere(point[place], bool(polished.found[place]), place, polished, stability)
        for place in range(len(flat))
    }
    if cycles:
        records |= _cycles(double, (len(flat),), flat, None, records)
    return [records[place] for place in range(len(flat))]


def _record_elsewhere(
    point: Tensor, found: bool, place: int, polished: Polished, stability: ClusterStability
) -> Equilibrium:
    tokens = point.shape[0]
    return Equilibrium(
        kind="equilibrium" if found else "not converged",
        sizes=(1,) * tokens,
        eigenvector=None,
        eigenspace=(),
        sign=None,
        stable=found and bool(stability.stable[place]),
        marginal=found and bool(stability.marginal[place]),
        index=int(stability.index[place]) if found else None,
        quotient_abscissa=float(stability.quotient_abscissa[place]) if found else math.nan,
        transversal_abscissa=-math.inf if found else math.nan,
        residual=float(polished.residual[place]),
        displacement=float(polished.displacement[place]),
        gap=math.inf,
        clusters=point,
        labels=torch.arange(tokens, device=point.device),
        multipliers=torch.full((tokens,), torch.nan, dtype=point.dtype, device=point.device),
    )


def _cycles(
    flow: AbstractFlow, shape: tuple[int, ...], x: Tensor, sizes: Tensor | None, records: dict[int, Equilibrium]
) -> dict[int, Equilibrium]:
    """The states that do not rest but return: the same records with the certificate of their cycle."""
    moving = [place for place, record in records.items() if record.kind in ("not converged", "slow")]
    if not moving:
        return {}
    index = torch.tensor(moving, device=x.device)
    own = flow.select(shape, index)
    if sizes is not None and isinstance(own, AbstractSphereFlow):
        own = own.with_sizes(sizes[index])
    found = cycles_through(own, x[index])
    return {moving[place]: as_cycle(records[moving[place]], floquet) for place, floquet in found.items()}
