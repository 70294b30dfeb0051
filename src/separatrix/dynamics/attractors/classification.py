"""Classify end states: which equilibrium it is, and whether it is stable, with certificates.

The route is independent of the closed forms in ``theory``: tokens are clustered, the clusters polished by Newton's
method, and stability is read off derivatives of the cluster flow. Source: altafini2025, sections 4 to 6; a
"1-clustering" of its Example 2 cannot rest and is reported as not converged.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import ShapeError, as_tensor, require_flags, require_kind, require_number
from separatrix.core.names import suggest_options

from ..cycles.limit_cycles import cycles_through
from ..equilibria.clusters import by_count, cluster_means, find_clusters
from ..equilibria.equilibrium import Equilibrium, Kind
from ..equilibria.polishing import Polished, polish
from ..equilibria.stability import ClusterStability, cluster_stability, token_stability
from ..flows.attention import AttentionFlow
from ..flows.base import AbstractFlow, AbstractSphereFlow, check_motion, common_axes, require_autonomous, require_flow
from ..flows.sphere import check_tokens
from ..integration.finishing import LARGEST_SYSTEM
from ..integration.orbits.floquet import Floquet


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Tolerances:
    """Thresholds of the classification; speeds and eigenvalues are in units of the norm of V."""

    distance: float = 1e-3
    displacement: float = 0.05
    slow: float = 1e-3
    eigenvector: float = 1e-9
    degenerate: float = 1e-8
    antipodal: float = 1e-8
    polygonal: float = 1e-9

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            require_number(getattr(self, field.name), field.name, at_least=0)


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
        evidence = _evidence(own, x[chosen], grouping.labels[chosen], m, rows, limits)
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


@final
@dataclasses.dataclass(frozen=True)
class _Evidence:
    """What was computed for elements with equal numbers of clusters, row by row."""

    clusters: Float[Tensor, "batch m d"]
    sizes: Float[Tensor, "batch m"]
    found: Tensor
    residual: Float[Tensor, " batch"]
    displacement: Float[Tensor, " batch"]
    gamma: Float[Tensor, "batch m"]
    rayleigh: Float[Tensor, " batch"]
    misfit: Float[Tensor, " batch"]
    eigenvalues: Float[Tensor, "batch d"]
    stability: ClusterStability | None
    rate: Float[Tensor, " batch"]
    homogeneous: bool
    """Whether equilibria with all tokens on one line must lie on an eigenvector of the value matrix."""

    def record(self, row: int, labels: Tensor, gap: float, limits: Tolerances) -> Equilibrium:
        """The classified state of one element."""
        kind = self._kind(row, limits)
        certified = self.stability if kind not in ("slow", "not converged") else None
        space = self._eigenspace(row, limits) if kind in ("consensus", "bipartite") else ()
        first = self.clusters[row, 0]
        return Equilibrium(
            kind=kind,
            sizes=tuple(int(size) if size == int(size) else size for size in self.sizes[row].tolist()),
            eigenvector=space[0] if len(space) == 1 else None,
            eigenspace=space,
            sign=int(first[first.abs().argmax()].sign()) if kind in ("consensus", "bipartite") else None,
            stable=certified is not None and bool(certified.stable[row]),
            marginal=certified is not None and bool(certified.marginal[row]),
            index=None if certified is None else int(certified.index[row]),
            quotient_abscissa=math.nan if certified is None else float(certified.quotient_abscissa[row]),
            transversal_abscissa=math.nan if certified is None else float(certified.transversal_abscissa[row]),
            residual=float(self.residual[row]),
            displacement=float(self.displacement[row]),
            gap=gap,
            clusters=self.clusters[row],
            labels=labels,
            multipliers=self.gamma[row],
        )

    def _kind(self, row: int, limits: Tolerances) -> Kind:
        rate = float(self.rate[row])
        if self.stability is None or not bool(self.found[row]):
            return "slow" if float(self.residual[row]) < limits.slow * rate else "not converged"
        on_eigenvector = float(self.misfit[row]) < limits.eigenvector * rate or not self.homogeneous
        m, w = self.clusters.shape[1], self.clusters[row]
        if m == 1:
            return "consensus" if on_eigenvector else "not converged"
        if m == 2 and float(torch.linalg.vector_norm(w[0] + w[1])) < limits.antipodal and on_eigenvector:
            return "bipartite"
        return "polygonal" if float(self.gamma[row].abs().max()) < limits.polygonal * rate else "clustering"

    def _eigenspace(self, row: int, limits: Tolerances) -> tuple[int, ...]:
        """Indices of the eigenvalues equal to the Rayleigh quotient of the first cluster; none off the eigenvectors."""
        rate = float(self.rate[row])
        if float(self.misfit[row]) >= limits.eigenvector * rate:
            return ()
        distance = (self.eigenvalues[row] - self.rayleigh[row]).abs()
        return tuple((distance < distance.min() + limits.degenerate * rate).nonzero().squeeze(-1).tolist())


def _evidence(
    flow: AbstractSphereFlow, x: Tensor, labels: Tensor, m: int, given: Tensor | None, limits: Tolerances
) -> _Evidence:
    w, sizes = cluster_means(x, labels, m, given)
    found = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    displacement = torch.full((len(x),), torch.nan, dtype=x.dtype, device=x.device)
    gamma, stability = torch.full_like(sizes, torch.nan), None
    residual = (flow if given is None else flow.with_sizes(given)).residual(x)
    rows = w if flow.reducible else x
    if rows.shape[1] * (x.shape[-1] - 1) <= LARGEST_SYSTEM:
        reduced = flow.with_sizes(sizes) if flow.reducible else flow
        polished = polish(reduced, rows, max_displacement=limits.displacement)
        found, displacement = polished.found, polished.displacement
        rows = torch.where(found[:, None, None], polished.point, rows)
        gamma = _multipliers(reduced, rows, labels, m)
        stability = cluster_stability(flow, rows, sizes) if flow.reducible else token_stability(flow, rows)
        residual = torch.where(found, polished.residual, residual)
        w = rows if flow.reducible else cluster_means(rows, labels, m, None)[0]
    rayleigh, misfit, eigenvalues = _alignment(flow, w[:, 0])
    rate = flow.rate.expand(len(x))
    homogeneous = not (isinstance(flow, AttentionFlow) and (flow.n_heads > 1 or flow.weights.value_bias is not None))
    return _Evidence(
        w, sizes, found, residual, displacement, gamma, rayleigh, misfit, eigenvalues, stability, rate, homogeneous
    )


def _multipliers(flow: AbstractSphereFlow, rows: Tensor, labels: Tensor, m: int) -> Tensor:
    """gamma_a = w_a' V mu_a; of the first token of each cluster where tokens have rows of their own."""
    gamma = (rows * flow.pull(rows)).sum(dim=-1)
    if flow.reducible:
        return gamma
    first = (labels.unsqueeze(-1) == torch.arange(m, device=labels.device)).to(torch.int8).argmax(dim=1)
    return gamma.gather(1, first)


def _alignment(flow: AbstractSphereFlow, w: Float[Tensor, "batch d"]) -> tuple[Tensor, Tensor, Tensor]:
    """Rayleigh quotient of w, how far w is from an eigenvector, and the real parts of all eigenvalues, descending."""
    image = (flow.value_sum @ w.unsqueeze(-1)).squeeze(-1)
    rayleigh = (w * image).sum(dim=-1)
    misfit = torch.linalg.vector_norm(image - rayleigh.unsqueeze(-1) * w, dim=-1)
    real = torch.linalg.eigvals(flow.value_sum).real.sort(dim=-1, descending=True).values
    return rayleigh, misfit, real.expand(len(w), -1)


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
