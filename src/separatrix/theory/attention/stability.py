r"""When a (bipartite) consensus is stable: one inequality, the window of splits it allows, and the critical beta.

For a symmetric value matrix with a positive largest eigenvalue, c = beta v_k' M v_k and h = ln(n_1/n_2), let

.. math:: H = \frac{\cosh 2|c| - \cosh h}{\sinh 2|c|}

be the harmonic mean of tanh(\|c\| + h/2) and tanh(\|c\| - h/2). A bipartite consensus on v_k is asymptotically stable
iff lambda_k c > 0 and every other eigenvalue lies below H \|lambda_k\|; if lambda_k < 0 it must moreover be the
strictly least eigenvalue and H > 0; if lambda_k > 0, H > 0 is needed unless one group is a single token. See
explanation/attention-equilibria.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Result, formula, require_integer

from .basis import (
    ArrayLike,
    Direction,
    Numbers,
    attention_matrices,
    direction,
    real_numbers,
    require_index,
    require_symmetric,
    strength_along,
    token_counts,
)
from .bipartite_weights import BipartiteWeights, log_ratio
from .block_spectrum import number

DEGENERATE = 1e-12
"""Eigenvalues closer than this many units count as equal: rounding separates them, the flow does not."""

MOST_TOKENS = 2**53
"""Beyond this a number of tokens is no longer exact in float64."""


@formula("separatrix", "stability criterion, harmonic mean")
def harmonic_pull(strength: Numbers, n1: Numbers, n2: Numbers) -> Float[Tensor, "*batch"]:
    r"""H = (cosh 2\|c\| - cosh h) / sinh 2\|c\|, written as a product so that nothing cancels or overflows."""
    twice, span = 2 * real_numbers(strength, "strength").abs(), log_ratio(*token_counts(n1, n2)).abs()
    gap = twice - span
    size = torch.expm1(-twice - span) * torch.expm1(-gap.abs()) * torch.exp((-gap).clamp_min(0))
    value = gap.sign() * size / -torch.expm1(-2 * twice)
    return torch.where((twice == 0) & (span == 0), torch.zeros_like(value), value)


@formula("separatrix", "stability criterion", erratum="altafini2025-E12")
def is_stable(
    eigenvalues: ArrayLike,
    k: int,
    strength: Numbers,
    n1: Numbers,
    n2: Numbers,
) -> Bool[Tensor, "*batch"]:
    r"""Whether n_1 tokens at +v_k and n_2 at -v_k are asymptotically stable, softmax attention, symmetric value.

    .. math:: \lambda_k c > 0 \quad\text{and}\quad \max_{j \ne k} \lambda_j < H \, |\lambda_k|

    with the two provisos of the module's first paragraph. Consensus (n_1 or n_2 = 0) is stable iff lambda_k > 0 is the
    strictly largest eigenvalue.

    Args:
        eigenvalues: (..., d), real, descending; the largest must be positive.
        k: number of the eigenvalue the tokens sit on.
        strength: c = beta v_k' M v_k, (...).
        n1, n2: tokens at +v_k and -v_k; numbers or arrays of them.

    Source: ours; equivalent to altafini2025, Theorem 2 with inequalities (9) corrected (E12, E13).
    """
    lam = _descending(eigenvalues)
    if not bool((lam[..., 0] > 0).all()):
        raise InvalidInput(
            "the largest eigenvalue must be positive for this criterion; read the sign off bipartite_spectrum instead."
        )
    k = require_index(k, lam.shape[-1])
    c = real_numbers(strength, "strength")
    first, second = token_counts(n1, n2)
    return _criterion(lam, k, c.sign(), harmonic_pull(c, first, second), first, second)


@formula("separatrix", "stability criterion for doubly stochastic attention")
def weights_are_stable(
    eigenvalues: ArrayLike, k: int, weights: BipartiteWeights, n1: Numbers, n2: Numbers
) -> Bool[Tensor, "*batch"]:
    """The criterion of ``is_stable`` for any attention between two groups (``sinkhorn_weights``, ``uniform_weights``).

    The harmonic mean is delta_1 delta_2 / \\|s\\| with s the mean pull, whose sign takes the place of the sign of c.
    """
    lam = _descending(eigenvalues)
    k = require_index(k, lam.shape[-1])
    pull = weights.delta_1 * weights.delta_2 / weights.mean_pull.abs()
    first, second = token_counts(n1, n2)
    return _criterion(lam, k, weights.mean_pull.sign(), pull, first, second)


def _criterion(lam: Tensor, k: int, sign: Tensor, pull: Tensor, n1: Tensor, n2: Tensor) -> Tensor:
    lam_k = lam[..., k]
    others = torch.cat([lam[..., :k], lam[..., k + 1 :]], dim=-1)
    slack = DEGENERATE * lam.abs().amax(-1)
    smaller = torch.minimum(n1, n2)
    below = others.amax(-1) < pull * lam_k.abs()
    simple = (others.amin(-1) > lam_k + slack) & (pull > 0)
    dominant = (others.amax(-1) < lam_k - slack) & ((pull > 0) | (smaller == 1))
    bipartite = (lam_k * sign > 0) & below & torch.where(lam_k < 0, simple, dominant)
    consensus = (others.amax(-1) < lam_k - slack) & ((lam_k > 0) | (n1 + n2 == 1))
    return torch.where(smaller == 0, consensus, bipartite)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class StableWindow(Result):
    """Which splits n_1 : n_2 of n tokens over +v_k and -v_k are stable.

    Attributes:
        lowest, highest: the stable n_1 form this interval (symmetric about n/2); ``lowest > highest`` if there is none.
        half_width: h*, the stable splits have \\|ln(n_1/n_2)\\| < h*; 0 if there is none.
        single: whether one token against all others is stable too although it lies outside the interval.
        consensus: whether all tokens at +v_k, or all at -v_k, is stable.
    """

    lowest: Int[Tensor, "*batch"]
    highest: Int[Tensor, "*batch"]
    half_width: Float[Tensor, "*batch"]
    single: Bool[Tensor, "*batch"]
    consensus: Bool[Tensor, "*batch"]

    @property
    def any_bipartite(self) -> Bool[Tensor, "*batch"]:
        """Whether some bipartite split is stable."""
        return (self.lowest <= self.highest) | self.single


@formula("separatrix", "stable window")
def stable_window(coupling: ArrayLike, value: ArrayLike, k: int, n_tokens: int, beta: Numbers = 1.0) -> StableWindow:
    r"""All stable splits of n tokens over +v_k and -v_k in closed form; no loop over n.

    .. math:: |h| < h^* = \operatorname{arccosh}(\cosh 2c - \rho \sinh 2|c|), \qquad
              \rho = \max_{j\ne k}\lambda_j/|\lambda_k|

    so that n/(1 + e^h*) < n_1 < n/(1 + e^-h*); for rho < 0 the wider bound \|h\| < 2\|c\| takes over.

    Args:
        coupling: query' key, (..., d, d).
        value: (..., d, d), symmetric.
        k: number of the eigenvalue of value, from 0 in descending order.
        n_tokens: number of tokens, at most 2^53.
        beta: inverse temperature, or an array of them that broadcasts against the leading axes of the matrices.

    Raises:
        OutsideTheory: value is not symmetric; ``count_stable`` evaluates the spectra instead.

    Source: ours. Cost: one eigendecomposition of value.

    Example:
        >>> M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
        >>> window = stable_window(M, V, 0, 1_000_000)
        >>> int(window.lowest), int(window.highest), round(float(window.half_width), 6)
        (199851, 800149, 1.387226)
    """
    logits, matrix = attention_matrices(coupling, value, beta)
    require_symmetric(matrix, "count_stable, which evaluates the exact spectra of every split")
    return window_along(direction(matrix, k), logits, n_tokens)


def window_along(way: Direction, logits: Float[Tensor, "*batch d d"], n_tokens: int) -> StableWindow:
    """The stable window on a direction that is already known."""
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    if n > MOST_TOKENS:
        raise InvalidInput(f"n_tokens must be at most 2^53, beyond which it is not exact in float64; got {n}.")
    strength = strength_along(logits, way.vector)
    lam = torch.cat([way.eigenvalue.unsqueeze(-1), way.others], dim=-1)  # the chosen one first: k = 0 below
    total = torch.full_like(strength, n, dtype=torch.int64)
    half_width = _half_width(way, strength)

    def stable(n1: Tensor) -> Tensor:
        inside = (n1 >= 1) & (n1 <= total - 1)
        safe = torch.where(inside, n1, 1)
        other = torch.where(inside, total - n1, 1)
        return inside & _criterion(lam, 0, strength.sign(), harmonic_pull(strength, safe, other), safe, other)

    start = (n * torch.sigmoid(-half_width)).floor().to(torch.int64) + 1
    # rounding of n / (1 + e^h*) can miss an edge by one: ask the criterion itself
    lowest = torch.where(stable(start - 1) & (start > 2), start - 1, torch.where(stable(start), start, start + 1))
    middle = total // 2
    empty = (half_width <= 0) | ~stable(middle)
    lowest = torch.where(empty, middle + 1, torch.minimum(lowest, middle))
    highest = torch.where(empty, total - middle - 1, total - lowest)
    single = stable(torch.ones_like(total)) & ((lowest > 1) | empty)
    consensus = _criterion(lam, 0, strength.sign(), torch.ones_like(strength), total, torch.zeros_like(total))
    return StableWindow(lowest, highest, half_width, single, consensus)


def _half_width(way: Direction, strength: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """h* = 2 asinh(sqrt(sinh a cosh a (tanh a - rho))), a = abs(c), in log space; 0 where no split is stable."""
    a = strength.abs()
    size = way.eigenvalue.abs().clamp_min(torch.finfo(torch.float64).tiny)
    missing = (size - way.others.amax(-1)) / size  # 1 - rho without cancellation
    room = missing - 2 / (torch.exp(2 * a.clamp(max=350.0)) + 1)  # tanh a - rho
    log_root = (2 * a + torch.log(-torch.expm1(-4 * a)) - torch.log(torch.tensor(4.0)) + torch.log(room)) / 2
    wide = torch.where(
        log_root > 20, 2 * (log_root + torch.log(torch.tensor(2.0))), 2 * torch.asinh(torch.exp(log_root.clamp(max=30)))
    )
    possible = (way.eigenvalue * strength > 0) & (room > 0)
    return torch.where(possible, torch.minimum(wide, 2 * a), torch.zeros_like(a))


@formula("separatrix", "critical inverse temperature")
def critical_beta(coupling: ArrayLike, value: ArrayLike, k: int) -> float | Float[Tensor, "*batch"]:
    r"""The inverse temperature above which some bipartite split of many tokens over +v_k and -v_k is stable.

    .. math:: \beta_c = \operatorname{artanh}(\rho) / |v_k' M v_k|, \qquad \rho = \max_{j \ne k} \lambda_j / |\lambda_k|

    It is 0 where rho <= 0, and infinite where no beta will do: lambda_k v_k' M v_k <= 0, or lambda_k neither the
    largest nor, being negative, the least and largest in modulus.

    Args:
        coupling: query' key, (..., d, d).
        value: (..., d, d), symmetric.
        k: number of the eigenvalue of value, from 0 in descending order.

    Raises:
        OutsideTheory: value is not symmetric.

    Returns:
        A float for one instance, a tensor for a batch.

    Source: ours.
    """
    _, strength, rho, possible = _opening(coupling, value, k)
    beta = torch.atanh(rho.clamp(0, 1)) / strength.abs()
    return number(torch.where(possible, beta, torch.full_like(beta, torch.inf)))


@formula("separatrix", "critical inverse temperature of a split")
def split_beta(
    coupling: ArrayLike, value: ArrayLike, k: int, n1: Numbers, n2: Numbers
) -> float | Float[Tensor, "*batch"]:
    r"""The inverse temperature above which n_1 tokens at +v_k and n_2 at -v_k are stable.

    .. math:: \beta = \frac{1}{2 |v_k' M v_k|}
              \ln \frac{\cosh h + \sqrt{\cosh^2 h - (1 - \rho^2)}}{1 - \rho}, \qquad h = \ln(n_1/n_2)

    and at least :math:`|h| / (2 |v_k' M v_k|)`, unless a group is a single token and lambda_k > 0. For equal groups it
    is ``critical_beta``. It is infinite where no beta will do.

    Args:
        coupling: query' key, (..., d, d).
        value: (..., d, d), symmetric.
        k: number of the eigenvalue of value, from 0 in descending order.
        n1, n2: tokens in each group, both positive; numbers, or arrays that broadcast against the batch.

    Raises:
        OutsideTheory: value is not symmetric.

    Returns:
        A float for one instance and split, a tensor otherwise.

    Source: ours; the edge of ``stable_window`` solved for beta.
    """
    way, strength, rho, possible = _opening(coupling, value, k)
    first, second = token_counts(n1, n2)
    if bool((first < 1).any()) or bool((second < 1).any()):
        raise InvalidInput(f"n1 and n2 must be at least 1 token each; got {n1!r} and {n2!r}.")
    span = log_ratio(first, second).abs()
    edge = torch.log((span.cosh() + (span.cosh() ** 2 - (1 - rho) * (1 + rho)).clamp_min(0).sqrt()) / (1 - rho))
    alone = (torch.minimum(first, second) == 1) & (way.eigenvalue > 0)
    edge = torch.where(alone, edge, torch.maximum(edge, span))
    beta = edge / (2 * strength.abs())
    return number(torch.where(possible, beta, torch.full_like(beta, torch.inf)))


def _opening(coupling: ArrayLike, value: ArrayLike, k: int) -> tuple[Direction, Tensor, Tensor, Tensor]:
    """The direction, v' M v, the ratio rho of the other eigenvalues, and whether some beta makes a split stable."""
    logits, matrix = attention_matrices(coupling, value, 1.0)
    require_symmetric(matrix, "bipartite_spectrum at several beta")
    way = direction(matrix, k)
    strength = strength_along(logits, way.vector)
    rho = way.others.amax(-1) / way.eigenvalue.abs()
    slack = DEGENERATE * way.scale
    least = (way.eigenvalue > 0) | (way.others.amin(-1) > way.eigenvalue + slack)
    return way, strength, rho, (way.eigenvalue * strength > 0) & (rho < 1 - DEGENERATE) & least


def _descending(eigenvalues: ArrayLike) -> Float[Tensor, "*batch d"]:
    try:
        lam = real_numbers(eigenvalues, "eigenvalues")
    except InvalidInput as refused:
        if "complex" not in str(refused):
            raise
        raise InvalidInput(
            "eigenvalues must be real for this criterion; where value is not symmetric use bipartite_spectrum."
        ) from None
    if lam.ndim < 1 or lam.shape[-1] < 2:
        raise InvalidInput(f"eigenvalues must have at least 2 entries on the last axis; got shape {tuple(lam.shape)}.")
    if bool((lam.diff(dim=-1) > 0).any()):
        raise InvalidInput("eigenvalues must be in descending order.")
    return lam
