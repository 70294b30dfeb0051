"""A head through a range of inverse temperatures: how many states are stable, and where each gains or loses it."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, final

import torch
from torch import Tensor

from separatrix.core import InvalidInput, Result, require_integer, spawn
from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.result import frame
from separatrix.dynamics import AttentionFlow, Branch, beta_branch
from separatrix.theory import StableCount, count_stable, split_beta

from .phases import inverse_temperatures
from .stable_states import multistability

if TYPE_CHECKING:
    import pandas

EVENTS = {"quotient": "groups move", "transversal": "a group splits", "end": "the state ends"}
MOST_CLUSTERINGS = 6
"""Clusterings that are followed, one of each label."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class SweptState(Result):
    """One equilibrium followed through the inverse temperatures.

    Attributes:
        name: what it is.
        sizes: tokens in each group.
        branch: the equilibrium at each beta, its abscissas and events, by Newton's method and bisection.
        predicted: the beta above which it is stable in closed form; None for clusterings, which have none.
    """

    name: str
    sizes: tuple[int, ...]
    branch: Branch = dataclasses.field(repr=False)
    predicted: float | None

    @property
    def events(self) -> list[float]:
        """Betas at which the state gains or loses stability, or ends, in the order in which they were met."""
        return [event.parameter for event in self.branch.events]


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BetaSweep(Result):
    """Counts of stable states at each beta, and equilibria followed from one beta to the next.

    ``counts`` are those of ``theory.count_stable``, ``states`` the pairs on the outer eigenvectors and the clusterings
    that a search found at the largest beta.
    """

    n_tokens: int
    betas: Tensor
    counts: tuple[StableCount, ...] = dataclasses.field(repr=False)
    states: tuple[SweptState, ...]
    seed: int

    def table(self) -> list[dict[str, Any]]:
        """One row per beta: stable points in all, per eigenvector that has some, and the followed states."""
        rows = []
        for beta, count in zip(self.betas.tolist(), self.counts, strict=True):
            row: dict[str, Any] = {"beta": beta, "log2 stable": count.log2_count}
            for k in sorted({k for item in self.counts for k, log2 in enumerate(item.log2_stable) if log2 >= 0}):
                row[f"log2 on v{k + 1}"] = count.log2_stable[k]
            for state in self.states:
                row[f"abscissa, {state.name}"] = _abscissa(state.branch, beta)
            rows.append(row)
        return rows

    def events(self) -> list[dict[str, Any]]:
        """One row per event: which state, at which beta, what happens, and the closed form where there is one."""
        return [
            {
                "state": state.name,
                "beta": event.parameter,
                "what": {"quotient": "groups move", "transversal": "a group splits", "end": "the state ends"}[
                    event.kind
                ],
                "stable beyond": event.stable_after,
                "closed form": state.predicted,
            }
            for state in self.states
            for event in state.branch.events
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with a row per beta."""
        return frame(self.table())


def beta_sweep(
    coupling: object, value: object, betas: object, n_tokens: int, *, clusterings: bool = True, seed: int = 0
) -> BetaSweep:
    """Count the stable states at each inverse temperature, and follow equilibria through them.

    Args:
        coupling: query' key, (d, d).
        value: (d, d), symmetric or not.
        betas: inverse temperatures, positive and increasing.
        n_tokens: number of tokens.
        clusterings: look for stable clusterings at the largest beta and follow them downwards.
        seed: of that search.

    Returns:
        Counts per beta, and a branch with its events for the most even pair on the first and on the last eigenvector
        (where they are real) and for each clustering found.

    Cost: a count per beta (``count_stable``) and a few Newton steps of O(m^3 d^3) per beta and state.

    Example:
        >>> M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
        >>> sweep = beta_sweep(M, V, [0.2, 0.5, 1.0], 10, clusterings=False)
        >>> [count.total for count in sweep.counts], [round(beta, 5) for beta in sweep.states[0].events]
        ([2, 674, 1676], [0.38508])
    """
    grid = inverse_temperatures(betas)
    if not float(grid[0]) > 0:
        raise InvalidInput("betas must be positive: at beta = 0 attention is uniform and has equilibria of its own.")
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    counts = tuple(count_stable(coupling, value, n, beta) for beta in grid.tolist())  # type: ignore[arg-type]
    flow = AttentionFlow.from_coupling(coupling, value).to(torch.float64)
    states = _pairs(flow, grid, n) if n > 1 else []
    if clusterings and n > 1:
        states += _clusterings(flow, grid, n, seed)
    return BetaSweep(n, grid, counts, tuple(states), seed)


def _pairs(flow: AttentionFlow, grid: Tensor, n: int) -> list[SweptState]:
    """The most even split on the first and on the last eigenvector, where these are real."""
    eigenvalues, vectors = eig(flow.value)
    order = eigenvalues.real.argsort(descending=True).tolist()
    symmetric = torch.allclose(flow.value, flow.value.mT, rtol=1e-12, atol=0.0)
    sizes = (n - n // 2, n // 2)
    found = []
    for k in (0, len(order) - 1):
        if float(eigenvalues[order[k]].imag) != 0.0:
            continue
        v = torch.nn.functional.normalize(vectors[:, order[k]].real, dim=0)
        branch = beta_branch(flow, torch.stack([v, -v]), sizes, grid)
        beta = float(split_beta(flow.coupling, flow.value, k, *sizes)) if symmetric else None
        found.append(SweptState(f"pair on v{k + 1}", sizes, branch, beta))
    return found


def _clusterings(flow: AttentionFlow, grid: Tensor, n: int, seed: int) -> list[SweptState]:
    """Stable clusterings at the largest beta, one of each label, followed downwards."""
    search = multistability(
        flow.coupling, flow.value, n, float(grid[-1]), generator=spawn(seed, "beta sweep"), n_pairs=min(n - 1, 39)
    )
    distinct = {item.coarse_label: item for item in search.clusterings}
    found = []
    for label, item in sorted(distinct.items())[:MOST_CLUSTERINGS]:
        sizes = tuple(int(size) for size in item.sizes)
        found.append(SweptState(label, sizes, beta_branch(flow, item.clusters, sizes, grid.flip(0)), None))
    return found


def _abscissa(branch: Branch, beta: float) -> float:
    """The abscissa of a branch at a beta that it was followed to; NaN beyond its end."""
    near = (branch.parameters - beta).abs() <= 1e-9 * beta
    if not bool(near.any()):
        return math.nan
    place = int(near.nonzero()[0])
    return float(torch.maximum(branch.quotient_abscissa[place], branch.transversal_abscissa[place]))
