"""Causal attention, where token i sees tokens 1 to i: spectra on the diagonal, exact counts that respect order."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from separatrix.core import InvalidInput, Result, as_float64, formula, require_integer

from .basis import ArrayLike, Numbers, attention_matrices, direction, eigenbasis, one_pair, real_numbers, strength_along
from .block_spectrum import BlockSpectrum
from .counting import no_resting_consensus
from .stability import DEGENERATE

COUNT_UP_TO = 2000


@formula("separatrix", "causal sign-pattern spectrum")
def causal_spectrum(
    coupling: ArrayLike, value: ArrayLike, k: int, signs: ArrayLike, beta: Numbers = 1.0
) -> BlockSpectrum:
    r"""Tangent spectrum at x_i = s_i v_k under a causal mask: the matrices are triangular, so it is their diagonal.

    .. math:: \lambda_j A_{ii} - \lambda_k \delta_i, \qquad \delta_i = s_i \sum_{j \le i} A_{ij} s_j

    Args:
        coupling, value: (..., d, d).
        k: number of the eigenvalue of value, from 0 in descending order of the real part.
        signs: (..., n), entries +1 and -1, in the order of the tokens.
        beta: inverse temperature.

    Source: ours, from the sign-pattern law. Cost: O(n d).
    """
    logits, matrix = attention_matrices(coupling, value, beta)
    way = direction(matrix, k)
    sign = as_float64(signs, "signs")
    if not bool((sign.abs() == 1).all()):
        raise InvalidInput("signs must be +1 or -1 for every token.")
    strength = strength_along(logits, way.vector).unsqueeze(-1)
    seen = torch.arange(1, sign.shape[-1] + 1, dtype=torch.float64)
    same = (seen + sign * sign.cumsum(-1)) / 2
    own = 1 / (same + (seen - same) * torch.exp(-2 * strength))  # A_ii; infinite exponentials give the right limit 0
    pull = torch.tanh(strength + (torch.log(same) - torch.log(seen - same)) / 2)
    diagonal = way.others.unsqueeze(-2) * own.unsqueeze(-1) - way.eigenvalue[..., None, None] * pull.unsqueeze(-1)
    quotient = diagonal.flatten(-2)
    n_tokens = sign.shape[-1]
    empty = quotient.new_zeros((*quotient.shape[:-1], n_tokens, 0))
    radial = -2 * way.eigenvalue.unsqueeze(-1) * pull
    return BlockSpectrum(
        "sign pattern", quotient, empty, (1,) * n_tokens, way.scale.expand(quotient.shape[:-1]), radial=radial
    )


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CausalCount(Result):
    """Stable points x_i = +-v_k under a causal mask, per eigenvector; only the first can carry any.

    ``warning`` says why no consensus is among them, or is None.
    """

    n_tokens: int
    dim: int
    eigenvalues: Shaped[Tensor, " d"]
    per_eigenvector: list[int]
    warning: str | None = None

    @property
    def total(self) -> int:
        """Number of stable points."""
        return sum(self.per_eigenvector)

    @property
    def log2_count(self) -> float:
        """Base-2 logarithm of the number of stable points."""
        return math.log2(self.total) if self.total else -math.inf


@formula("separatrix", "exact causal count")
def count_stable_causal(coupling: ArrayLike, value: ArrayLike, n_tokens: int, beta: Numbers = 1.0) -> CausalCount:
    """Count the stable points among the d 2^n consensus and bipartite consensus equilibria of causal attention.

    The first token sees only itself, so only v_1 can be stable; after it, order matters (``causal_patterns``).

    Args:
        coupling, value: (d, d); value symmetric or not.
        n_tokens: number of tokens, at most 2000 (the cost grows like n^2 big integers).
        beta: inverse temperature.

    Source: ours; the causal model is that of the literature on autoregressive attention flows.
    """
    logits, matrix = one_pair(coupling, value, beta)
    if matrix.ndim != 2:
        raise InvalidInput(f"count_stable_causal takes one pair of matrices; got a batch {tuple(matrix.shape[:-2])}.")
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    eigenvalues, _ = eigenbasis(matrix)
    counts = [0] * matrix.shape[-1]
    if not eigenvalues.is_complex() or float(eigenvalues[0].imag) == 0:
        way = direction(matrix, 0)
        strength = float(strength_along(logits, way.vector))
        counts[0] = causal_patterns(float(way.eigenvalue), float(way.others.real.amax(-1)), strength, n)
    return CausalCount(n, matrix.shape[-1], eigenvalues, counts, no_resting_consensus(matrix, eigenvalues, n))


@formula("separatrix", "causal dynamic programme")
def causal_patterns(largest: Numbers, second: Numbers, strength: Numbers, n_tokens: int) -> int:
    r"""Number of sign sequences that are stable on v_1 under a causal mask, by dynamic programming over (plus, minus).

    A sequence is stable iff for every token, with n_s tokens of its own sign and n_o of the other up to and with
    itself,

    .. math:: e^{2c} (\lambda_1 n_s - \lambda_2) > \lambda_1 n_o

    Args:
        largest, second: the largest real eigenvalue of value and the largest real part among the others.
        strength: c = beta v_1' M v_1.
        n_tokens: number of tokens, at most 2000.

    Example:
        >>> causal_patterns(1.0, 0.5, 0.6, 12)
        1782
    """
    first, next_one, c = _one(largest, "largest"), _one(second, "second"), _one(strength, "strength")
    n = require_integer(n_tokens, "n_tokens", at_least=1)
    if n > COUNT_UP_TO:
        raise InvalidInput(f"n_tokens must be at most {COUNT_UP_TO} for the exact causal count; got {n}.")

    def allowed(same: int, other: int) -> bool:
        reach = first * same - next_one
        if abs(reach) <= DEGENERATE * max(abs(first), abs(next_one)):
            reach = 0.0  # equal eigenvalues, told apart by rounding only
        if abs(c) > 350:  # e^{2c} is beyond float64: only signs matter
            return reach > 0 if c > 0 or other == 0 else first < 0
        return math.exp(2 * c) * reach > first * other

    row = {0: 1}  # sequences of the present length by their number of plus signs
    for length in range(n):
        following: dict[int, int] = {}
        for plus, ways in row.items():
            minus = length - plus
            if allowed(plus + 1, minus):
                following[plus + 1] = following.get(plus + 1, 0) + ways
            if allowed(minus + 1, plus):
                following[plus] = following.get(plus, 0) + ways
        row = following
    return sum(row.values())


def _one(given: object, name: str) -> float:
    numbers = real_numbers(given, name)
    if numbers.numel() != 1:
        raise InvalidInput(f"{name} must be one number; got an array of shape {tuple(numbers.shape)}.")
    return float(numbers)
