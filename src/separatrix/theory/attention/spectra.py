"""Tangent spectra at consensus, bipartite and general sign-pattern equilibria, at a cost that does not depend on n.

Tokens x_i = s_i v on one real eigenvector v of value rest for any signs s. The derivative of the attention weights
never enters there: it moves the attended mean along v, which the projection removes. What remains is a small problem
for each other eigenvalue of value.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_float64, formula, require_integer
from separatrix.matrices import robust_eigenvalues

from .basis import (
    ArrayLike,
    Direction,
    Numbers,
    attention_matrices,
    direction,
    real_numbers,
    strength_along,
    value_matrix,
)
from .bipartite_weights import BipartiteWeights, sinkhorn_weights, softmax_weights
from .block_spectrum import BlockSpectrum


@formula("altafini2025", "Lemma 9")
def consensus_spectrum(value: ArrayLike, k: int, n_tokens: int) -> BlockSpectrum:
    r"""Tangent spectrum where all tokens agree on the k-th eigenvector of value, for every kind of attention.

    .. math:: \lambda_j - \lambda_k \ (j \ne k), \qquad -\lambda_k \text{ with multiplicity } (n-1)(d-1)

    Args:
        value: (..., d, d), symmetric or not.
        k: number of the eigenvalue, from 0 in descending order of the real part.
        n_tokens: number of tokens.

    Raises:
        OutsideTheory: the k-th eigenvalue is complex.

    Source: altafini2025, Lemmas 4 and 9. Cost: one eigendecomposition of value.

    Example:
        >>> spectrum = consensus_spectrum([[2.0, 0.0], [0.0, 1.0]], 0, 3)
        >>> spectrum.abscissa, spectrum.stable, spectrum.expand().real.tolist()
        (-1.0, True, [-1.0, -2.0, -2.0])
    """
    n_tokens = require_integer(n_tokens, "n_tokens", at_least=1)
    way = direction(value_matrix(value), k)
    return consensus_along(way, n_tokens)


def consensus_along(way: Direction, n_tokens: int | float) -> BlockSpectrum:
    """The spectrum of consensus on a direction that is already known."""
    split = (-way.eigenvalue[..., None, None]).expand(*way.others.shape[:-1], 1, way.others.shape[-1])
    quotient = way.others - way.eigenvalue.unsqueeze(-1)
    return BlockSpectrum("consensus", quotient, split, (n_tokens,), way.scale, radial=-2 * way.eigenvalue.unsqueeze(-1))


@formula("altafini2025", "Lemma 10", erratum="altafini2025-E6")
def bipartite_spectrum(
    coupling: ArrayLike, value: ArrayLike, k: int, n1: int | float, n2: int | float, beta: Numbers = 1.0
) -> BlockSpectrum:
    r"""Tangent spectrum where n_1 tokens sit at +v_k and n_2 at -v_k, softmax attention.

    For each j other than k the two eigenvalues of

    .. math:: \begin{pmatrix} -\delta_1\lambda_k + \lambda_j p & \lambda_j(1-p) \\
              \lambda_j(1-q) & -\delta_2\lambda_k + \lambda_j q \end{pmatrix},

    and :math:`-\delta_1\lambda_k`, :math:`-\delta_2\lambda_k` with multiplicities (n_1 - 1)(d - 1) and (n_2 - 1)(d -
    1). p, q and delta are those of ``softmax_weights``.

    Args:
        coupling: query' key, (..., d, d).
        value: (..., d, d), symmetric or not.
        k: number of the eigenvalue of value, from 0 in descending order of the real part.
        n1, n2: tokens at +v_k and at -v_k; real weights stand for the limit of many tokens. One of them may be 0
            (consensus).
        beta: inverse temperature.

    Raises:
        OutsideTheory: the k-th eigenvalue is complex.

    Source: altafini2025, Lemma 10. Cost: one eigendecomposition of value, whatever the number of tokens.

    Example:
        >>> M, V = torch.diag(torch.tensor([0.9, 0.2, -1.1])), torch.diag(torch.tensor([3.0, 1.0, -4.0]))
        >>> spectrum = bipartite_spectrum(M, V, 0, 600_000, 400_000)
        >>> spectrum.stable, round(spectrum.abscissa, 6)
        (True, -0.969648)
    """
    logits, matrix = attention_matrices(coupling, value, beta)
    n1, n2 = group_sizes(n1, n2)
    way = direction(matrix, k)
    if n1 == 0 or n2 == 0:
        return consensus_along(way, n1 + n2)
    return bipartite_along(way, softmax_weights(strength_along(logits, way.vector), n1, n2), (n1, n2))


@formula("separatrix", "bipartite spectrum of doubly stochastic attention")
def sinkhorn_bipartite_spectrum(
    coupling: ArrayLike, value: ArrayLike, k: int, n1: int | float, n2: int | float, beta: Numbers = 1.0
) -> BlockSpectrum:
    """The spectrum of ``bipartite_spectrum`` for doubly stochastic (Sinkhorn) attention: same blocks, other weights."""
    logits, matrix = attention_matrices(coupling, value, beta)
    n1, n2 = group_sizes(n1, n2)
    way = direction(matrix, k)
    if n1 == 0 or n2 == 0:
        return consensus_along(way, n1 + n2)
    return bipartite_along(way, sinkhorn_weights(strength_along(logits, way.vector), n1, n2), (n1, n2))


def bipartite_along(way: Direction, weights: BipartiteWeights, sizes: tuple[int | float, int | float]) -> BlockSpectrum:
    """The bipartite spectrum of any attention on a known direction, from the weights between the two groups."""
    pulls = torch.stack(torch.broadcast_tensors(weights.delta_1, weights.delta_2), dim=-1)
    split = -pulls * way.eigenvalue.unsqueeze(-1)
    quotient = block_eigenvalues(way.others, way.eigenvalue, weights)
    transversal = split.unsqueeze(-1).expand(*split.shape, way.others.shape[-1])
    return BlockSpectrum("bipartite", quotient.flatten(-2), transversal, sizes, way.scale, radial=2 * split)


def block_eigenvalues(
    others: Shaped[Tensor, "*#batch j"], eigenvalue: Float[Tensor, "*#batch"], weights: BipartiteWeights
) -> Shaped[Tensor, "*batch j 2"]:
    """Both eigenvalues of every 2 x 2 block, the one of larger modulus first.

    The determinant factors as (l_j - l_k)(s l_j - delta_1 delta_2 l_k), so the smaller root keeps its relative
    accuracy; its sign is what stability hangs on.
    """
    lam_k = eigenvalue.unsqueeze(-1)
    leave_1, leave_2 = weights.leave_1.unsqueeze(-1), weights.leave_2.unsqueeze(-1)
    delta_1, delta_2 = weights.delta_1.unsqueeze(-1), weights.delta_2.unsqueeze(-1)
    first = others * (1 - leave_1) - delta_1 * lam_k
    second = others * (1 - leave_2) - delta_2 * lam_k
    mean, half = (first + second) / 2, (first - second) / 2
    if others.is_complex():
        root = torch.sqrt(half**2 + others**2 * (leave_1 * leave_2))
        aligned = (mean.conj() * root).real >= 0
    else:
        root = torch.hypot(half, others.abs() * (leave_1 * leave_2).sqrt())
        aligned = mean >= 0
    larger = torch.where(aligned, mean + root, mean - root)
    product = (others - lam_k) * (weights.mean_pull.unsqueeze(-1) * others - delta_1 * delta_2 * lam_k)
    smaller = torch.where(larger == 0, torch.zeros_like(larger), product / larger.where(larger != 0, 1.0))
    return torch.stack([larger, smaller], dim=-1)


@formula("separatrix", "sign-pattern law")
def sign_pattern_spectrum(value: ArrayLike, k: int, signs: ArrayLike, attention: ArrayLike) -> BlockSpectrum:
    r"""Tangent spectrum at x_i = s_i v_k for any row-stochastic attention (masked, biased, doubly stochastic, uniform).

    .. math:: \bigcup_{j \ne k} \operatorname{eig}\bigl(\lambda_j A - \lambda_k \operatorname{diag}(s \circ A s)\bigr)

    Args:
        value: (..., d, d), symmetric or not.
        k: number of the eigenvalue, from 0 in descending order of the real part.
        signs: (..., n), entries +1 and -1.
        attention: (..., n, n), the attention matrix at that point; its rows sum to one.

    Raises:
        OutsideTheory: the k-th eigenvalue is complex.

    Source: ours; it contains altafini2025, Lemmas 9 and 10. Cost: d - 1 eigenvalue problems of size n.
    """
    way = direction(value_matrix(value), k)
    sign = as_float64(signs, "signs")
    weights = as_float64(attention, "attention")
    require_pattern(sign, weights)
    pull = sign * (weights @ sign.unsqueeze(-1)).squeeze(-1)
    lam_j, lam_k = way.others[..., None, None], way.eigenvalue[..., None]
    radial = -lam_k * pull
    blocks = lam_j * weights.unsqueeze(-3) + torch.diag_embed(radial).unsqueeze(-3)
    quotient = robust_eigenvalues(blocks).flatten(-2)
    empty = quotient.new_zeros((*quotient.shape[:-1], sign.shape[-1], 0))
    sizes = (1,) * sign.shape[-1]
    return BlockSpectrum(
        "sign pattern", quotient, empty, sizes, way.scale.expand(quotient.shape[:-1]), radial=2 * radial
    )


@formula("separatrix", "softmax attention at a sign pattern")
def sign_pattern_attention(
    strength: Numbers,
    signs: ArrayLike,
    mask: Bool[Tensor, "n n"] | None = None,
    bias: Float[Tensor, "n n"] | None = None,
) -> Float[Tensor, "*batch n n"]:
    """Softmax attention at x_i = s_i v: logits c s_i s_j plus a position bias, where the mask allows.

    Args:
        strength: c = beta v' M v.
        signs: +1 and -1.
        mask: true where token i may see token j; every row needs one true entry.
        bias: added to the logits.
    """
    sign = real_numbers(signs, "signs")
    if sign.ndim < 1:
        raise ShapeError(f"signs must have shape (..., n), one sign per token; got {signs!r}.")
    logits = real_numbers(strength, "strength")[..., None, None] * sign[..., :, None] * sign[..., None, :]
    if bias is not None:
        logits = logits + bias
    if mask is not None:
        empty_row = ~mask.any(-1)
        if bool(empty_row.any()):
            raise InvalidInput(
                f"mask must let every token see at least one; row {int(empty_row.nonzero()[0])} is empty."
            )
        logits = logits.masked_fill(~mask, -torch.inf)
    return torch.softmax(logits, dim=-1)


def group_sizes(n1: Any, n2: Any) -> tuple[int | float, int | float]:
    """Two non-negative sizes, not both zero; whole numbers come back as integers."""
    for name, size in (("n1", n1), ("n2", n2)):
        known = (hasattr(size, "__index__") or isinstance(size, float)) and getattr(size, "ndim", 0) == 0
        if isinstance(size, bool) or not known or not 0 <= size < float("inf"):
            raise InvalidInput(f"{name} must be a finite number of tokens of at least 0; got {size!r}.")
    if n1 + n2 <= 0:
        raise InvalidInput("n1 + n2 must be at least 1 token; got 0.")
    return (int(n1) if n1 == int(n1) else n1), (int(n2) if n2 == int(n2) else n2)


def require_pattern(signs: Tensor, attention: Tensor) -> None:
    """Refuse signs other than +1 and -1, and attention that is not row-stochastic or of another size."""
    if not bool((signs.abs() == 1).all()):
        raise InvalidInput("signs must be +1 or -1 for every token.")
    n_tokens = signs.shape[-1]
    if attention.ndim < 2 or attention.shape[-2:] != (n_tokens, n_tokens):
        raise ShapeError(f"attention must have shape (..., {n_tokens}, {n_tokens}); got {tuple(attention.shape)}.")
    error = float((attention.sum(-1) - 1).abs().max())
    if error > 1e-8 or bool((attention < 0).any()):
        raise InvalidInput(
            f"attention must be row-stochastic (entries >= 0, rows that sum to one); a row sum is off by {error:.2g}."
        )
