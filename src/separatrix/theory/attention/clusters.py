"""Tangent spectrum of clustered states: a small block that moves clusters and one that splits each, whatever n is.

m clusters at unit vectors w_a with n_a tokens. Tokens of one cluster see and are seen alike, so the Jacobian of the n
tokens acts on cluster means (the quotient) and, n_a - 1 times over, on differences within cluster a.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_float64, formula
from separatrix.matrices import robust_eigenvalues

from .basis import ArrayLike, Numbers, attention_matrices, eigenbasis
from .block_spectrum import BlockSpectrum


@formula("separatrix", "block spectrum of clustering equilibria")
def cluster_spectrum(
    coupling: ArrayLike, value: ArrayLike, clusters: ArrayLike, sizes: ArrayLike, beta: Numbers = 1.0
) -> BlockSpectrum:
    r"""Tangent spectrum where n_a tokens sit at w_a, for any value and coupling, in O(m^3 d^3).

    With weights :math:`\pi_{ab} \propto n_b e^{\beta w_a' M w_b}`, means :math:`\mu_a = \sum_b \pi_{ab} w_b`,
    covariances C_a, multipliers :math:`\gamma_a = w_a' V \mu_a` and B_a a basis of the tangent space at w_a:

    .. math::
        D_a &= B_a'(\beta V C_a M')B_a - \gamma_a I \quad\text{(splits cluster a, } n_a - 1 \text{ times)} \\
        G_{ab} &= \pi_{ab} B_a' V (I + \beta (w_b - \mu_a) w_a' M) B_b + [a = b] D_a \quad\text{(moves clusters, once)}

    Since C_a has rank below m, for d > m every cluster of at least two tokens contributes -gamma_a: a stable clustering
    equilibrium needs every gamma_a > 0.

    Args:
        coupling: query' key, (..., d, d).
        value: (..., d, d), symmetric or not.
        clusters: (..., m, d), unit vectors.
        sizes: m numbers of tokens; numbers that are not whole are weights of a mean-field limit.
        beta: inverse temperature.

    Returns:
        The spectrum; ``residual`` is the largest speed of a cluster (the blocks hold at any clustered point, ``stable``
        asks for an equilibrium too).

    Source: ours; altafini2025, section 5.2, leaves this spectrum open.
    """
    logits, matrix = attention_matrices(coupling, value, beta)
    points, counts = checked_clusters(clusters, sizes, matrix.shape[-1])
    return clustered_spectrum(logits.unsqueeze(-3), matrix.unsqueeze(-3), points, counts)


def clustered_spectrum(
    logits: Float[Tensor, "*#batch heads d d"],
    values: Float[Tensor, "*#batch heads d d"],
    points: Float[Tensor, "*#batch m d"],
    sizes: tuple[int | float, ...],
) -> BlockSpectrum:
    """The block spectrum summed over heads; ``logits`` is beta times each head's coupling."""
    basis = tangent_basis(points)
    scores = torch.einsum("...ad,...hde,...be->...hab", points, logits, points)
    weights = torch.softmax(scores + torch.log(torch.tensor(sizes, dtype=torch.float64)), dim=-1)
    means = weights @ points.unsqueeze(-3)
    pull = torch.einsum("...hde,...hae->...ad", values, means)
    gamma = (pull * points).sum(-1)
    residual = (pull - gamma.unsqueeze(-1) * points).norm(dim=-1).amax(-1)
    split = _splitting_blocks(logits, values, points, weights, means, basis, gamma)
    quotient = _moving_block(logits, values, points, weights, means, basis, split)
    scale = eigenbasis(values.sum(-3))[0].abs().amax(-1)
    transversal = robust_eigenvalues(split)
    return BlockSpectrum(
        "clustering",
        robust_eigenvalues(quotient),
        transversal,
        sizes,
        scale.expand(residual.shape),
        residual=residual,
    )


def tangent_basis(points: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d tangent"]:
    """An orthonormal basis of the space orthogonal to each unit vector, as columns (last columns of a reflection)."""
    dim = points.shape[-1]
    first = torch.zeros(dim, dtype=points.dtype, device=points.device)
    first[0] = 1.0
    sign = torch.where(points[..., :1] >= 0, 1.0, -1.0)
    mirror = points + sign * first  # reflecting e_1 to -sign * point, away from cancellation
    scaled = 2 / (mirror * mirror).sum(-1, keepdim=True)
    reflection = torch.eye(dim, dtype=points.dtype, device=points.device) - (
        scaled.unsqueeze(-1) * mirror.unsqueeze(-1) * mirror.unsqueeze(-2)
    )
    return reflection[..., :, 1:]


def _splitting_blocks(
    logits: Tensor, values: Tensor, points: Tensor, weights: Tensor, means: Tensor, basis: Tensor, gamma: Tensor
) -> Float[Tensor, "*batch m t t"]:
    """D_a: what pulls two tokens of cluster a apart or together."""
    covariance = torch.einsum("...hab,...bd,...be->...hade", weights, points, points)
    covariance = covariance - means.unsqueeze(-1) * means.unsqueeze(-2)
    response = torch.einsum("...hde,...haef,...hgf->...adg", values, covariance, logits)
    inner = basis.mT @ response @ basis
    return inner - gamma[..., None, None] * torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)


def _moving_block(
    logits: Tensor, values: Tensor, points: Tensor, weights: Tensor, means: Tensor, basis: Tensor, split: Tensor
) -> Float[Tensor, "*batch mt mt"]:
    """G: how each cluster's motion acts on every other, an m (d - 1) square matrix."""
    heard = torch.einsum("...hab,...hde->...abde", weights, values)
    reach = points.unsqueeze(-3).unsqueeze(-4) - means.unsqueeze(-2)  # (..., h, a, b, d): w_b - mu_a
    attends = torch.einsum("...ad,...hde->...hae", points, logits)
    tilt = torch.einsum("...hab,...hde,...habe,...haf->...abdf", weights, values, reach, attends)
    blocks = torch.einsum("...adt,...abde,...beu->...atbu", basis, heard + tilt, basis)
    m, size = points.shape[-2], basis.shape[-1]
    diagonal = torch.einsum("...atu,ab->...atbu", split, torch.eye(m, dtype=split.dtype, device=split.device))
    return (blocks + diagonal).flatten(-4, -3).flatten(-2, -1).reshape(*blocks.shape[:-4], m * size, m * size)


def checked_clusters(clusters: ArrayLike, sizes: ArrayLike, dim: int) -> tuple[Tensor, tuple[int | float, ...]]:
    """Unit vectors with as many positive sizes; whole sizes come back as integers."""
    points = as_float64(clusters, "clusters")
    if points.ndim < 2 or points.shape[-1] != dim:
        raise ShapeError(f"clusters must have shape (..., m, {dim}), one row per cluster; got {tuple(points.shape)}.")
    off = (points.norm(dim=-1) - 1).abs()
    if float(off.max()) > 1e-6:
        worst = int(off.reshape(-1, off.shape[-1]).amax(0).argmax())
        raise InvalidInput(
            f"clusters must be unit vectors; the norm of cluster {worst} differs from 1 by {float(off.max()):.2g}."
        )
    counts = as_float64(sizes, "sizes")
    if counts.shape != points.shape[-2:-1]:
        raise ShapeError(
            f"sizes must hold one number for each of {points.shape[-2]} clusters; got {tuple(counts.shape)}."
        )
    if bool((counts <= 0).any()):
        index = int((counts <= 0).nonzero()[0])
        raise InvalidInput(f"sizes must be positive; entry {index} is {float(counts[index]):g}.")
    whole = bool((counts == counts.round()).all())
    return points, tuple(int(size) if whole else float(size) for size in counts)
