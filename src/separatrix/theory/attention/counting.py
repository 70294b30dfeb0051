"""How many of the d 2^n consensus and bipartite consensus points are stable, exactly."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, Result, formula, require_integer

from .basis import (
    ArrayLike,
    Direction,
    Numbers,
    attention_matrices,
    direction,
    eigenbasis,
    is_symmetric,
    one_pair,
    require_symmetric,
    strength_along,
)
from .binomial_tails import binomial_sum, joined, log_inside, log_outside, logsumexp
from .bipartite_weights import softmax_weights
from .block_spectrum import MARGINAL
from .cycle import consensus_cycle
from .spectra import block_eigenvalues, sign_pattern_attention, sign_pattern_spectrum
from .stability import StableWindow, window_along

EXACT_UP_TO = 10_000
"""Number of tokens up to which counts are exact integers; beyond, logarithms."""

SPECTRA_UP_TO = 10_000_000
EXHAUSTIVE_UP_TO = 12


@final
@dataclasses.dataclass(frozen=True, repr=False)
class StableCount(Result):
    """Stable points among the d 2^n states x_i = +-v_k.

    Attributes:
        n_tokens, dim: n and d.
        eigenvalues: of value, in descending order of the real part.
        per_eigenvector: stable points on each eigenvector as exact integers, the two consensus points counted on
            theirs; ``None`` beyond 10^4 tokens, where ``log2_stable`` holds what is known.
        windows: the intervals of stable n_1 (from 1 to n - 1) on each eigenvector.
        log2_stable, log2_unstable_each: base-2 logarithms of the stable and of the unstable points per eigenvector.
        method: ``"window"`` (closed form), ``"spectra"`` (every split evaluated) or ``"exhaustive"`` (every sign
            pattern).
        warning: why no consensus is among them (it rotates, does not attract, or is marginal), or ``None``.
    """

    n_tokens: int
    dim: int
    eigenvalues: Shaped[Tensor, " d"]
    per_eigenvector: list[int] | None
    windows: list[list[tuple[int, int]]]
    log2_stable: list[float]
    log2_unstable_each: list[float]
    method: str
    warning: str | None = None

    @property
    def total(self) -> int | None:
        """Number of stable points, or ``None`` where only logarithms are known."""
        return None if self.per_eigenvector is None else sum(self.per_eigenvector)

    @property
    def log2_count(self) -> float:
        """Base-2 logarithm of the number of stable points."""
        return _log2_sum(self.log2_stable) if self.total is None else _log2(self.total)

    @property
    def log2_unstable(self) -> float:
        """Base-2 logarithm of the number of points that are not stable."""
        if self.total is None:
            return _log2_sum(self.log2_unstable_each)
        return _log2(self.dim * 2**self.n_tokens - self.total)


@formula("separatrix", "exact count of stable bipartite consensus points")
def count_stable(
    coupling: ArrayLike, value: ArrayLike, n_tokens: int, beta: Numbers = 1.0, exhaustive: bool = False
) -> StableCount:
    r"""Count the asymptotically stable points among the d 2^n consensus and bipartite consensus equilibria.

    .. math:: \sum_k \sum_{n_1 \in \text{window}_k} \binom{n}{n_1} \; + \; 2 \ \text{(consensus on } \pm v_1)

    A symmetric value matrix with a positive largest eigenvalue takes the closed-form window; any other one has the
    2 x 2 blocks of every split evaluated. Eigenvalues that are complex carry no equilibrium and count 0.

    Args:
        coupling: query' key, (d, d).
        value: (d, d), symmetric or not.
        n_tokens: number of tokens; exact integers up to 10^4, logarithms beyond.
        beta: inverse temperature.
        exhaustive: instead enumerate all 2^n sign patterns with the sign-pattern law (at most 12 tokens), as a check.

    Raises:
        OutsideTheory: value has no closed-form window and n_tokens exceeds 10^7.

    Source: ours; altafini2025, Example 3, samples these points. Cost: closed form: one eigendecomposition, then O(n)
    big integers up to 10^4 tokens and O(sqrt n) numbers beyond; spectra: O(d^2 n).

    Example:
        >>> M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
        >>> count_stable(M, V, 10).per_eigenvector
        [1004, 0, 672]
    """
    logits, matrix = one_pair(coupling, value, beta)
    if matrix.ndim != 2:
        raise InvalidInput(
            f"count_stable takes one pair of matrices; got a batch {tuple(matrix.shape[:-2])}. Use stable_windows."
        )
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    eigenvalues, _ = eigenbasis(matrix)
    largest = float(eigenvalues.real[0])
    warning = no_resting_consensus(matrix, eigenvalues, n)
    if exhaustive:
        return _exhaustive_count(logits, matrix, n, eigenvalues, warning)
    last = len(eigenvalues) - 1
    if is_symmetric(matrix) and largest > 0:  # between the first and the last eigenvector nothing can be stable
        stable = [_window_intervals(matrix, logits, k, n) if k in (0, last) else [] for k in range(last + 1)]
        return _assemble(n, eigenvalues, stable, "window", warning)
    stable = [_spectra_intervals(matrix, logits, k, n, eigenvalues) for k in range(last + 1)]
    return _assemble(n, eigenvalues, stable, "spectra", warning)


@formula("separatrix", "stable windows of a batch")
def stable_windows(coupling: ArrayLike, value: ArrayLike, n_tokens: int, beta: Numbers = 1.0) -> StableWindow:
    """The stable windows on the first and on the last eigenvector, for a whole batch of instances at once.

    No other eigenvector can carry a stable point. The last axis of every field has two entries: v_1 and v_d.

    Args:
        coupling, value: (..., d, d), value symmetric.
        n_tokens: number of tokens.
        beta: inverse temperature, or an array of them that broadcasts against the leading axes of the matrices.
    """
    logits, matrix = attention_matrices(coupling, value, beta)
    require_symmetric(matrix, "count_stable, which evaluates the exact spectra of every split")
    ends = [window_along(direction(matrix, k), logits, n_tokens) for k in (0, matrix.shape[-1] - 1)]
    fields = [field.name for field in dataclasses.fields(StableWindow)]
    return StableWindow(**{name: torch.stack([getattr(end, name) for end in ends], dim=-1) for name in fields})


def no_resting_consensus(matrix: Tensor, eigenvalues: Tensor, n_tokens: int) -> str | None:
    """Why no consensus of tokens is a stable rest point, in one sentence; None if one is."""
    lead = complex(eigenvalues[0])
    if lead.imag != 0:
        cycle = consensus_cycle(matrix, n_tokens)
        how = "is stable" if cycle.stable else "is not stable"
        return (
            f"the principal eigenvalue of value is the complex pair {lead.real:.4g} +- {abs(lead.imag):.4g}i, so that "
            f"no consensus rests on it: tokens that agree rotate with period {cycle.period:.4g}, and this cycle {how} "
            "(consensus_cycle). A cycle is no point, and is not counted here."
        )
    if lead.real <= 0:
        return (
            f"the largest eigenvalue of value is {lead.real:.4g}, not positive: theorems about consensus do not apply."
        )
    scale = float(eigenvalues.abs().max())
    if len(eigenvalues) > 1 and lead.real - float(eigenvalues[1].real) <= MARGINAL * scale:
        return (
            f"the largest real part {lead.real:.4g} belongs to several eigenvalues of value, so that consensus is at "
            "best marginal: linearisation decides nothing there, and nothing is counted on it."
        )
    return None


def _window_intervals(matrix: Tensor, logits: Tensor, k: int, n: int) -> list[tuple[int, int]]:
    """Intervals of stable n_1 from 0 to n (0 and n are consensus) by the closed form."""
    window = window_along(direction(matrix, k), logits, n)
    lowest, highest = int(window.lowest), int(window.highest)
    found = [(lowest, highest)] if lowest <= highest else []
    if bool(window.single):
        found += [(1, 1), (n - 1, n - 1)]
    if bool(window.consensus):
        found += [(0, 0), (n, n)]
    return sorted(set(found))


def _spectra_intervals(matrix: Tensor, logits: Tensor, k: int, n: int, eigenvalues: Tensor) -> list[tuple[int, int]]:
    """The same intervals by evaluating the blocks of every split; complex eigenvalues carry no equilibrium."""
    if n > SPECTRA_UP_TO:
        raise OutsideTheory(
            f"n_tokens must be at most {SPECTRA_UP_TO} where value is not symmetric or has no positive eigenvalue, "
            f"because every split is evaluated; got {n}."
        )
    if eigenvalues.is_complex() and float(eigenvalues[k].imag) != 0:
        return []
    way = direction(matrix, k)
    strength = strength_along(logits, way.vector)
    splits = torch.arange(1, n // 2 + 1, dtype=torch.float64)
    stable = torch.cat([_split_is_stable(way, strength, part, n) for part in splits.split(1 << 17)]) if n > 1 else None
    gap = float((way.others.real.amax(-1) - way.eigenvalue).item())
    consensus = gap < -MARGINAL * float(way.scale) and (n == 1 or float(way.eigenvalue) > MARGINAL * float(way.scale))
    half = [] if stable is None else (stable.nonzero().squeeze(-1) + 1).tolist()
    members = sorted({*half, *(n - i for i in half), *((0, n) if consensus else ())})
    return _intervals(members)


def _split_is_stable(way: Direction, strength: Tensor, n1: Tensor, n: int) -> Tensor:
    weights = softmax_weights(strength.expand(n1.shape), n1, n - n1)
    others = way.others.expand(n1.shape[0], -1)
    blocks = block_eigenvalues(others, way.eigenvalue.expand(n1.shape), weights).real.amax(dim=(-2, -1))
    alone = torch.full_like(blocks, -torch.inf)
    first = torch.where(n1 > 1, -weights.delta_1 * way.eigenvalue, alone)
    second = torch.where(n - n1 > 1, -weights.delta_2 * way.eigenvalue, alone)
    return torch.maximum(blocks, torch.maximum(first, second)) < -MARGINAL * way.scale


def _intervals(members: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for member in members:
        if found and member == found[-1][1] + 1:
            found[-1] = (found[-1][0], member)
        else:
            found.append((member, member))
    return found


def _exhaustive_count(logits: Tensor, matrix: Tensor, n: int, eigenvalues: Tensor, warning: str | None) -> StableCount:
    if n > EXHAUSTIVE_UP_TO:
        raise InvalidInput(f"exhaustive counting enumerates 2^n patterns, so n_tokens must be at most 12; got {n}.")
    bits = torch.arange(2**n).unsqueeze(-1) >> torch.arange(n) & 1
    signs = 1.0 - 2.0 * bits.to(torch.float64)
    plus = (signs > 0).sum(-1)
    counts: list[int] = []
    stable: list[list[tuple[int, int]]] = []
    for k in range(matrix.shape[-1]):
        if eigenvalues.is_complex() and float(eigenvalues[k].imag) != 0:
            counts.append(0)
            stable.append([])
            continue
        strength = strength_along(logits, direction(matrix, k).vector)
        settled = sign_pattern_spectrum(matrix, k, signs, sign_pattern_attention(strength, signs)).stable
        settled = torch.as_tensor(settled)
        counts.append(int(settled.sum()))
        stable.append(_intervals(sorted(set(plus[settled].tolist()))))
    result = _assemble(n, eigenvalues, stable, "exhaustive", warning)
    return dataclasses.replace(result, per_eigenvector=counts)


def _assemble(
    n: int, eigenvalues: Tensor, stable: list[list[tuple[int, int]]], method: str, warning: str | None
) -> StableCount:
    exact = [sum(binomial_sum(n, *part) for part in parts) for parts in stable] if n <= EXACT_UP_TO else None
    if exact is not None:
        log_stable, log_unstable = [_log2(count) for count in exact], [_log2(2**n - count) for count in exact]
    else:
        log_stable = [n + log_inside(n, parts) / math.log(2) for parts in stable]
        log_unstable = [n + log_outside(n, parts) / math.log(2) for parts in stable]
    windows = [_bipartite_only(parts, n) for parts in stable]
    return StableCount(n, len(eigenvalues), eigenvalues, exact, windows, log_stable, log_unstable, method, warning)


def _bipartite_only(parts: list[tuple[int, int]], n: int) -> list[tuple[int, int]]:
    clipped = [(max(low, 1), min(high, n - 1)) for low, high in parts]
    return joined([(low, high) for low, high in clipped if low <= high])


def _log2(count: int) -> float:
    return math.log2(count) if count else -math.inf


def _log2_sum(logs: list[float]) -> float:
    return logsumexp([log * math.log(2) for log in logs]) / math.log(2)
