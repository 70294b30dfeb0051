"""Which states of a head are stable at which inverse temperature: closed form, with a census on top.

Source: ours; the windows and thresholds are those of ``theory.stable_windows`` and ``theory.critical_beta``, the census
is an independent route. See explanation/attention-equilibria.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Result, as_float64, require_integer
from separatrix.core.result import frame
from separatrix.dynamics import AttentionFlow, Equilibrium, census
from separatrix.theory import bipartite_spectrum, critical_beta, split_beta, stable_windows

if TYPE_CHECKING:
    import pandas


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PhaseEnd(Result):
    """What some of the starts of a census at one inverse temperature ended in.

    ``share`` is that of the tokens in the first group of two, or in the largest cluster; 1 for consensus.
    """

    beta: float
    label: str
    family: str
    share: float
    stable: bool
    count: int


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PhaseDiagram(Result):
    """Stable states of a head along the inverse temperature.

    Attributes:
        n_tokens: number of tokens n.
        betas: inverse temperatures, increasing.
        eigenvectors: the two that can carry stable states, from 0: the first and the last.
        lowest, highest: (2, betas), the stable n_1 on each; ``lowest > highest`` where there is none.
        half_width: (2, betas), the stable splits have \\|ln(n_1/n_2)\\| below it.
        single: (2, betas), whether one token against all others is stable although it lies outside.
        critical: for each, the beta above which some split of many tokens is stable; infinite if there is none.
        opening: the same for exactly n tokens, whose most even split need not be even.
        consensus: whether all tokens on v_1 are stable, at any beta.
        ends: what a census reached, with counts.
        n_starts: starts of the census at each of ``census_betas``.
        seed: of the census.
    """

    n_tokens: int
    betas: Float[Tensor, " betas"]
    eigenvectors: tuple[int, int]
    lowest: Int[Tensor, "2 betas"] = dataclasses.field(repr=False)
    highest: Int[Tensor, "2 betas"] = dataclasses.field(repr=False)
    half_width: Float[Tensor, "2 betas"] = dataclasses.field(repr=False)
    single: Bool[Tensor, "2 betas"] = dataclasses.field(repr=False)
    critical: tuple[float, float]
    opening: tuple[float, float]
    consensus: bool
    census_betas: Float[Tensor, " chosen"]
    ends: tuple[PhaseEnd, ...] = dataclasses.field(repr=False)
    n_starts: int
    seed: int

    @property
    def bipartite(self) -> Bool[Tensor, "2 betas"]:
        """Whether some split on each eigenvector is stable at each beta."""
        return (self.lowest <= self.highest) | self.single

    @property
    def multistable(self) -> Bool[Tensor, " betas"]:
        """Whether more than one state modulo antipode is stable in closed form; the census may know of more."""
        alone = (
            self.n_tokens <= 2 and not self.consensus
        )  # a pair of tokens is its own antipode with the tokens swapped
        return self.bipartite.any(0) & (not alone)

    def table(self) -> list[dict[str, Any]]:
        """One row per beta: windows on both eigenvectors, and what the census reached there."""
        reached = {float(beta): [end for end in self.ends if end.beta == float(beta)] for beta in self.census_betas}
        rows = []
        for i, beta in enumerate(self.betas.tolist()):
            row: dict[str, Any] = {"beta": beta}
            for j, k in enumerate(self.eigenvectors):
                low, high = int(self.lowest[j, i]), int(self.highest[j, i])
                row[f"stable n1 on v{k + 1}"] = (
                    "none" if low > high else str(low) if low == high else f"{low} to {high}"
                )
                row[f"one against all on v{k + 1}"] = bool(self.single[j, i])
            row["multistable"] = bool(self.multistable[i])
            counts: Counter[str] = Counter()
            for end in reached.get(beta, ()):
                counts[end.family] += end.count
            row["census"] = ", ".join(f"{family} {count}" for family, count in counts.most_common())
            rows.append(row)
        return rows

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with a row per beta."""
        return frame(self.table())


def phase_diagram(
    coupling: object,
    value: object,
    betas: object,
    n_tokens: int,
    *,
    n_starts: int = 0,
    n_census: int = 9,
    seed: int = 0,
) -> PhaseDiagram:
    """Which splits of n tokens are stable at which inverse temperature, and what a census reaches there.

    Args:
        coupling: query' key, (d, d).
        value: (d, d), symmetric, with a positive largest eigenvalue.
        betas: inverse temperatures, increasing.
        n_tokens: number of tokens.
        n_starts: uniform starts of a census at some of the betas; 0 leaves it out.
        n_census: at how many of the betas, spread evenly over them.
        seed: of the census.

    Raises:
        OutsideTheory: value is not symmetric; ``beta_sweep`` takes any.
        Contradiction: a certified stable end of the census lies outside the closed-form window.

    Returns:
        A diagram that ``separatrix.plot`` draws.

    Cost: closed form: an eigendecomposition per beta; census: O(n^2 d) per step and start.

    Example:
        >>> M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
        >>> diagram = phase_diagram(M, V, [0.2, 0.5, 1.0], 10)
        >>> diagram.lowest.tolist(), [round(beta, 6) for beta in diagram.critical]
        ([[6, 4, 2], [6, 6, 4]], [0.385082, 0.884505])
    """
    grid = inverse_temperatures(betas)
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    starts, chosen = (
        require_integer(n_starts, "n_starts", at_least=0),
        require_integer(n_census, "n_census", at_least=1),
    )
    windows = stable_windows(coupling, value, n, grid)  # type: ignore[arg-type]  # checked there, by name
    last = as_float64(value, "value").shape[-1] - 1
    if windows.lowest.ndim != 2:
        raise InvalidInput(f"phase_diagram takes one pair of matrices; got a batch {tuple(windows.lowest.shape[:-2])}.")
    picked = grid[torch.linspace(0, len(grid) - 1, min(chosen, len(grid))).round().long()] if starts else grid[:0]
    even = (n - n // 2, n // 2)
    return PhaseDiagram(
        n_tokens=n,
        betas=grid,
        eigenvectors=(0, last),
        lowest=windows.lowest.mT,
        highest=windows.highest.mT,
        half_width=windows.half_width.mT,
        single=windows.single.mT,
        critical=_both(lambda k: critical_beta(coupling, value, k), last),  # type: ignore[arg-type]
        opening=_both(lambda k: split_beta(coupling, value, k, *even) if n > 1 else float("inf"), last),  # type: ignore[arg-type]
        consensus=bool(windows.consensus[0, 0]),
        census_betas=picked,
        ends=tuple(end for beta in picked.tolist() for end in _reached(coupling, value, beta, n, starts, seed)),
        n_starts=starts,
        seed=seed,
    )


def inverse_temperatures(betas: object) -> Float[Tensor, " betas"]:
    """Increasing inverse temperatures, at least one."""
    grid = as_float64(betas, "betas").reshape(-1)
    if not len(grid) or bool((grid < 0).any()) or bool((grid.diff() <= 0).any()):
        raise InvalidInput(f"betas must be increasing numbers of at least 0; got {len(grid)} that are not.")
    return grid


def _both(threshold: Any, last: int) -> tuple[float, float]:
    return float(threshold(0)), float(threshold(last))


def _reached(coupling: object, value: object, beta: float, n: int, n_starts: int, seed: int) -> list[PhaseEnd]:
    """Where uniform starts end at one beta, each label once; the same starts at every beta."""

    def allowed(_instance: int, k: int, n1: int, n2: int) -> bool:
        predicted = bipartite_spectrum(coupling, value, k, n1, n2, beta)  # type: ignore[arg-type]
        return bool(predicted.stable or predicted.marginal)

    flow = AttentionFlow.from_coupling(coupling, value, beta)
    taken = census([flow], n_tokens=n, n_starts=n_starts, seed=seed, check=allowed).instances[0]
    kinds: dict[tuple[str, float], list[Equilibrium]] = {}
    for end in taken.ends:
        kinds.setdefault((end.coarse_label, _share(end, n)), []).append(end)
    return [
        PhaseEnd(beta, label, ends[0].family, share, all(end.stable for end in ends), len(ends))
        for (label, share), ends in kinds.items()
    ]


def _share(end: Equilibrium, n: int) -> float:
    if end.kind == "bipartite":
        first = int(end.sizes[0]) if end.sign == 1 else int(end.sizes[1])
        return first / n
    return max(end.sizes) / n if end.sizes else 1.0
