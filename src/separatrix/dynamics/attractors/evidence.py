"""What decides the class of a state on the sphere: its clusters, polished, with derivatives of the cluster flow."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import require_number
from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.names import suggest_options

from ..equilibria.clusters import cluster_means
from ..equilibria.equilibrium import Equilibrium, Kind
from ..equilibria.polishing import polish
from ..equilibria.stability import ClusterStability, cluster_stability, token_stability
from ..flows.attention import AttentionFlow
from ..flows.base import AbstractSphereFlow
from ..integration.finishing import LARGEST_SYSTEM


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


@final
@dataclasses.dataclass(frozen=True)
class Evidence:
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
        on_eigenvector = float(self.misfit[row]) <= limits.eigenvector * rate or not self.homogeneous
        m, w = self.clusters.shape[1], self.clusters[row]
        if m == 1:
            return "consensus" if on_eigenvector else "not converged"
        if m == 2 and float(torch.linalg.vector_norm(w[0] + w[1])) < limits.antipodal and on_eigenvector:
            return "bipartite"
        return "polygonal" if float(self.gamma[row].abs().max()) <= limits.polygonal * rate else "clustering"

    def _eigenspace(self, row: int, limits: Tolerances) -> tuple[int, ...]:
        """Indices of the eigenvalues equal to the Rayleigh quotient of the first cluster; none off the eigenvectors."""
        rate = float(self.rate[row])
        if float(self.misfit[row]) > limits.eigenvector * rate:
            return ()
        distance = (self.eigenvalues[row] - self.rayleigh[row]).abs()
        return tuple((distance <= distance.min() + limits.degenerate * rate).nonzero().squeeze(-1).tolist())


def gather_evidence(
    flow: AbstractSphereFlow, x: Tensor, labels: Tensor, m: int, given: Tensor | None, limits: Tolerances
) -> Evidence:
    """Polish the clusters of states that have m of them, and differentiate the flow there.

    Args:
        flow: of these elements.
        x: states (batch, n, d).
        labels: which of the m clusters each row belongs to.
        m: number of clusters.
        given: sizes of the rows, if they stand for several tokens.
        limits: thresholds.
    """
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
    return Evidence(
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
    real = eigvals(flow.value_sum).real.sort(dim=-1, descending=True).values
    return rayleigh, misfit, real.expand(len(w), -1)
