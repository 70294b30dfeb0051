"""One layer iterated for ever: where tokens end if the same attention layer moves them again and again.

Tokens that have come together within 1e-3 are carried on as one row with a size. Once all agree, what remains is
dw/dt = (I - w w') V_S w, solved exactly as w(t) = exp(V_S t) w / length; the same length says whether the tokens stay
together, since their spread shrinks like one over it. Source: altafini2025, sections 5 to 7.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix import dynamics, theory
from separatrix.core import Outcome, Result, require_positive
from separatrix.core.arithmetic.eigenvalues import eig, eigvals
from separatrix.dynamics.equilibria.clusters import cluster_means, find_clusters
from separatrix.dynamics.flows.sphere import check_tokens

from .layer import AttentionLayer

EndKind: TypeAlias = Literal[
    "consensus", "consensus cycle", "bipartite", "clustering", "moving groups", "resting, not certified"
]
TOGETHER = 1e-3
"""Chordal distance at which tokens are carried on as one."""

REST = 1e-7
"""Speed, in units of the norm of V_S, at which a state rests."""

LARGEST_NEWTON = 2000
"""Unknowns up to which a resting state is polished and its spectrum computed."""

EXPANSIONS = 60.0
"""Length of the exact consensus motion, in units of one over the gap of the spectrum: e^-60 is beyond rounding."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class FrozenEnd(Result):
    """Where one start ends under a frozen layer.

    Attributes:
        start: which tokens it started from.
        kind: what the end is; "moving groups" are several groups that still move at the time limit.
        sizes: tokens per group, largest first.
        alignment: length of the projection of the largest group on the principal eigenvector of V_S, or on its plane
            if the principal pair is complex; 1 means exactly there.
        stable: decided by the tangent spectrum at the end; None where it was not computed.
        period: of a consensus cycle.
        time: until all groups stood still, or agreed (looked at every twentieth of the limit), or the limit;
            in units of one over the principal real part.
        residual: speed of the fastest group at the end.
    """

    start: str
    kind: EndKind
    sizes: tuple[int, ...]
    alignment: float
    stable: bool | None
    period: float | None
    time: float
    residual: float

    @property
    def sentence(self) -> str:
        """The end in words."""
        where = f" (alignment {self.alignment:.3f})"
        if self.kind == "consensus":
            return (
                "collapses to consensus on the principal eigenvector"
                if self.alignment > 0.999
                else (f"collapses to consensus off the principal eigenvector{where}")
            )
        if self.kind == "consensus cycle":
            return f"collapses to consensus that rotates in the principal plane with period {self.period:.3g}"
        groups = "/".join(str(size) for size in self.sizes[:8]) + ("/..." if len(self.sizes) > 8 else "")
        if self.kind == "moving groups":
            return f"keeps {len(self.sizes)} groups ({groups}) that still move at the time limit"
        if self.kind == "resting, not certified":
            return f"comes to rest in {len(self.sizes)} groups ({groups}), too many to certify"
        return f"comes to rest in {len(self.sizes)} {'opposite ' if self.kind == 'bipartite' else ''}groups ({groups})"


def frozen_flow(
    layer: AttentionLayer,
    tokens: object,
    *,
    start: str = "given tokens",
    biases: bool = False,
    token_norm: int | float | None = None,
    t_max: int | float = 200.0,
) -> list[FrozenEnd]:
    """Follow one layer, applied for ever, from each start.

    Args:
        layer: the layer.
        tokens: unit tokens (starts, n, d) or (n, d).
        start: how the starts are called in the result.
        biases: keep the biases of the projections.
        token_norm: length of the tokens the layer reads; by default sqrt(d).
        t_max: time limit in units of one over the principal real part of V_S (of the norm of V_S if that is not
            positive).

    Returns:
        One end per start.

    Cost: a few hundred velocities of 2 h n d (d + n) multiply-adds per start.
    """
    require_positive(float(t_max), "t_max")
    x = check_tokens(tokens, "tokens").double()
    x = x.unsqueeze(0) if x.ndim == 2 else x
    flow = layer.flow(biases=biases, token_norm=token_norm)
    principal = _Principal.of(flow.value_sum)
    unit = 1 / (principal.real if principal.real > 0 else float(flow.rate))
    run = _settled(flow, x, t_max * unit)
    return [_end(layer, flow, principal, run, row, start, unit) for row in range(len(x))]


@final
@dataclasses.dataclass(frozen=True)
class _Principal:
    """The principal eigenvalue of V_S, an orthonormal basis of its line or plane, and the gap to the next."""

    real: float
    imaginary: float
    basis: Float[Tensor, "d r"]
    gap: float

    @classmethod
    def of(cls, value: Float[Tensor, "d d"]) -> _Principal:
        eigenvalues, vectors = eig(value)
        first = int(eigenvalues.real.argmax())
        chosen, vector = complex(eigenvalues[first]), vectors[:, first]
        is_pair = chosen.imag != 0
        columns = torch.stack([vector.real, vector.imag], dim=1) if is_pair else vector.real.unsqueeze(1)
        rest = eigenvalues.real.sort(descending=True).values[2 if is_pair else 1 :]
        gap = chosen.real - float(rest[0]) if len(rest) else abs(chosen.real)
        return cls(chosen.real, abs(chosen.imag), torch.linalg.qr(columns).Q, gap)

    def alignment(self, w: Float[Tensor, " d"]) -> float:
        return float(torch.linalg.vector_norm(self.basis.mT @ w))


@final
@dataclasses.dataclass
class _Run:
    """Groups of each start after integration; place holders have size zero."""

    rows: Float[Tensor, "starts m d"]
    sizes: Float[Tensor, "starts m"]
    time: Float[Tensor, " starts"]
    residual: Float[Tensor, " starts"]
    at_rest: Bool[Tensor, " starts"]


def _settled(flow: dynamics.AttentionFlow, x: Float[Tensor, "starts n d"], limit: float) -> _Run:
    """Integrate in stages; after each, tokens that stand together become one row, and agreement ends a start."""
    nothing = x.new_zeros(len(x))
    run = _Run(x, x.new_ones(x.shape[:2]), nothing.clone(), nothing.clone(), nothing.bool())
    if not flow.reducible:
        done = dynamics.integrate(flow, x, merging=False, finishing=False, tol=REST, t_max=limit)
        labels = find_clusters(done.final, TOGETHER)
        rows, sizes = cluster_means(done.final, labels.labels, int(labels.n_clusters.max()), None)
        return _Run(rows, sizes, done.time, done.residual, done.outcome == Outcome.CONVERGED)
    linear = flow.weights.value_bias is None
    stage = limit / 20
    for _ in range(20):
        counts = (run.sizes > 0).sum(dim=-1)
        active = (~run.at_rest & ~((counts == 1) & linear)).nonzero().squeeze(-1)
        if not len(active):
            break
        sized = flow.with_sizes(run.sizes[active])
        part = dynamics.integrate(sized, run.rows[active], merging=False, finishing=False, tol=REST, t_max=stage)
        run.rows[active] = part.final
        run.time[active] += part.time
        run.residual[active] = part.residual
        run.at_rest[active] = part.outcome == Outcome.CONVERGED
        run = _merged(run)
    return run


def _merged(run: _Run) -> _Run:
    """The same states with tokens that stand together as one row."""
    live = torch.where((run.sizes > 0).unsqueeze(-1), run.rows, run.rows[:, :1])
    found = find_clusters(live, TOGETHER)
    rows, sizes = cluster_means(live, found.labels, int(found.n_clusters.max()), run.sizes)
    rows = torch.where((sizes > 0).unsqueeze(-1), rows, rows[:, :1])
    return dataclasses.replace(run, rows=rows, sizes=sizes)


def _end(
    layer: AttentionLayer,
    flow: dynamics.AttentionFlow,
    principal: _Principal,
    run: _Run,
    row: int,
    start: str,
    unit: float,
) -> FrozenEnd:
    present = run.sizes[row] > 0
    w, sizes = run.rows[row][present], run.sizes[row][present]
    order = sizes.argsort(descending=True, stable=True)
    w, sizes = w[order], sizes[order]
    kind: EndKind
    stable: bool | None = None
    period = None
    if len(sizes) == 1 and flow.weights.value_bias is None:
        kind, w, stable, period = _agreed(flow, principal, w, int(sizes[0]))
    elif not bool(run.at_rest[row]):
        kind = "moving groups"
    else:
        kind, w, stable = _rested(layer, flow, w, sizes)
    residual = float(flow.with_sizes(sizes).residual(w)) if flow.reducible else float(run.residual[row])
    return FrozenEnd(
        start=start,
        kind=kind,
        sizes=tuple(int(size) for size in sizes.tolist()),
        alignment=principal.alignment(w[0]),
        stable=stable,
        period=period,
        time=float(run.time[row]) / unit,
        residual=residual,
    )


def _agreed(
    flow: dynamics.AttentionFlow, principal: _Principal, w: Float[Tensor, "one d"], n: int
) -> tuple[EndKind, Tensor, bool | None, float | None]:
    """All tokens agree: the exact rest of the motion, and whether they stay together on the way and at its end."""
    value = flow.value_sum
    eye = torch.eye(len(value), dtype=value.dtype)
    if _parts(value, w[0]):
        return "moving groups", w, False, None
    late = torch.linalg.matrix_exp((value - principal.real * eye) * (EXPANSIONS / max(principal.gap, 1e-6)))
    end = dynamics.normalise((late @ w[0]).unsqueeze(0))
    if principal.imaginary > 0:
        cycle = theory.consensus_cycle(value, n)
        return "consensus cycle", end, cycle.stable, float(cycle.period)
    jacobian = flow.to(torch.float64).jacobian(end)  # of one row: motions in which all tokens keep together
    together = float(eigvals(jacobian).real.max())
    apart = -float((end * flow.pull(end)).sum())  # every difference between tokens decays at this rate
    return "consensus", end, max(together, apart if n > 1 else -math.inf) < 0, None


def _parts(value: Float[Tensor, "d d"], w: Float[Tensor, " d"]) -> bool:
    """Whether tokens 1e-3 apart would grow a hundredfold apart before the motion of their mean settles."""
    step = 0.5 / float(torch.linalg.matrix_norm(value, ord=2))
    advance, length, lowest = torch.linalg.matrix_exp(value * step), 0.0, 0.0
    for _ in range(200):
        w = advance @ w
        length += math.log(float(torch.linalg.vector_norm(w)))
        w = w / torch.linalg.vector_norm(w)
        lowest = min(lowest, length)
    return lowest < -math.log(100)


def _rested(
    layer: AttentionLayer, flow: dynamics.AttentionFlow, w: Float[Tensor, "m d"], sizes: Float[Tensor, " m"]
) -> tuple[EndKind, Tensor, bool | None]:
    """A state at rest: polished by Newton's method, with the tangent spectrum where a closed form exists."""
    m, d = w.shape
    if not flow.reducible or m * (d - 1) > LARGEST_NEWTON:
        return ("consensus" if m == 1 else "resting, not certified"), w, None
    polished = dynamics.polish(flow, w.unsqueeze(0), sizes.unsqueeze(0))
    if not bool(polished.found[0]):
        return "moving groups", w, None
    point = polished.point[0]
    kind: EndKind = "consensus" if m == 1 else "clustering"
    if m == 2 and float(torch.linalg.vector_norm(point[0] + point[1])) < 1e-6:
        kind = "bipartite"
    if flow.weights.value_bias is not None:
        return kind, point, None
    beta = float(flow.weights.beta)
    counts = [int(size) for size in sizes.tolist()]
    spectrum = theory.multihead_cluster_spectrum(layer.couplings, layer.values, point, counts, beta)
    return kind, point, bool(spectrum.stable)
