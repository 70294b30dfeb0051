"""The multiagent Oja flow, dx_i/dt = (I - x_i x_i') V m with m the mean token: attention at beta = 0."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, as_float64, formula
from separatrix.matrices import robust_eigenvalues

from .basis import ArrayLike, direction, eigenbasis, require_symmetric, value_matrix
from .bipartite_weights import uniform_weights
from .block_spectrum import BlockSpectrum
from .spectra import bipartite_along, consensus_along, group_sizes


@formula("altafini2025", "Lemma 4", erratum="altafini2025-E4")
def oja_bipartite_spectrum(value: ArrayLike, k: int, n1: int | float, n2: int | float) -> BlockSpectrum:
    r"""Tangent spectrum of the multiagent Oja flow with n_1 tokens at +v_k and n_2 at -v_k (n_2 = 0: consensus).

    The blocks of ``bipartite_spectrum`` with p = n_1/n and q = n_2/n. For n_1 != n_2 some eigenvalue is positive or
    some block has a negative determinant. For n_1 = n_2 all are lambda_j (j != k) and zeros: not linearly unstable on
    v_1 when every other eigenvalue is negative.

    Args:
        value: (..., d, d), symmetric or not.
        k: number of the eigenvalue, from 0 in descending order of the real part.
        n1, n2: tokens at +v_k and at -v_k.

    Source: altafini2025, Lemma 4, corrected (E3, E4).
    """
    n1, n2 = group_sizes(n1, n2)
    way = direction(value_matrix(value), k)
    if n1 == 0 or n2 == 0:
        return consensus_along(way, n1 + n2)
    weights = uniform_weights(torch.full_like(way.eigenvalue, n1), torch.full_like(way.eigenvalue, n2))
    return bipartite_along(way, weights, (n1, n2))


@formula("separatrix", "polygonal spectrum of the multiagent Oja flow")
def oja_polygonal_spectrum(value: ArrayLike, tokens: ArrayLike) -> BlockSpectrum:
    r"""Tangent spectrum of the multiagent Oja flow where V times the sum of tokens vanishes.

    The d eigenvalues of :math:`(I - S)V`, :math:`S = \frac1n \sum_i x_i x_i'`, and n (d - 1) - d zeros (those who slide
    along the set of such states).

    Args:
        value: (d, d).
        tokens: (n, d), unit vectors, at least two.

    Raises:
        OutsideTheory: V times the mean token is not zero.
    """
    matrix = value_matrix(value)
    x = as_float64(tokens, "tokens")
    n_tokens, dim = x.shape[-2:]
    _require_unit(x)
    pull = float((matrix @ x.mean(-2).unsqueeze(-1)).norm())
    scale = eigenbasis(matrix)[0].abs().amax(-1)
    if pull > 1e-8 * float(scale.max()):
        raise OutsideTheory(f"V times the mean token must vanish at a polygonal equilibrium; its norm is {pull:.3g}.")
    spread = torch.eye(dim, dtype=torch.float64) - x.mT @ x / n_tokens
    moving = robust_eigenvalues(spread @ matrix)
    still = moving.new_zeros((*moving.shape[:-1], n_tokens * (dim - 1) - dim))
    quotient = torch.cat([moving, still], dim=-1)
    empty = quotient.new_zeros((*quotient.shape[:-1], n_tokens, 0))
    return BlockSpectrum("polygonal", quotient, empty, (1,) * n_tokens, scale.expand(quotient.shape[:-1]))


@formula("altafini2025", "Lemma 5", erratum="altafini2025-E7")
def oja_lyapunov(value: ArrayLike, tokens: ArrayLike) -> Float[Tensor, "*batch"]:
    """W = (lambda_1 - m' V m) / 2 with m the mean token; it never increases along the multiagent Oja flow.

    Args:
        value: (d, d), symmetric.
        tokens: (..., n, d), unit vectors.
    """
    matrix, x = _symmetric_and_tokens(value, tokens)
    mean = x.mean(-2)
    largest = eigenbasis(matrix)[0][..., 0]
    return (largest - torch.einsum("...a,...ab,...b->...", mean, matrix, mean)) / 2


@formula("altafini2025", "Lemma 5, proof", erratum="altafini2025-E7")
def oja_lyapunov_rate(value: ArrayLike, tokens: ArrayLike) -> Float[Tensor, "*batch"]:
    """dW/dt = -\\|y\\|^2 + mean over tokens of (x_i . y)^2, y = V m: never positive."""
    matrix, x = _symmetric_and_tokens(value, tokens)
    pull = (matrix @ x.mean(-2).unsqueeze(-1)).squeeze(-1)
    along = torch.einsum("...nd,...d->...n", x, pull)
    return (along**2).mean(-1) - (pull**2).sum(-1)


def _symmetric_and_tokens(value: ArrayLike, tokens: ArrayLike) -> tuple[Tensor, Tensor]:
    matrix = value_matrix(value)
    require_symmetric(matrix, "a direct simulation, since this Lyapunov function needs symmetry")
    x = as_float64(tokens, "tokens")
    _require_unit(x)
    return matrix, x


def _require_unit(tokens: Tensor) -> None:
    off = (tokens.norm(dim=-1) - 1).abs()
    if float(off.max()) > 1e-6:
        index = int(off.reshape(-1, off.shape[-1]).amax(0).argmax())
        raise InvalidInput(f"tokens must be unit vectors; the norm of token {index} is off by {float(off.max()):.2g}.")
