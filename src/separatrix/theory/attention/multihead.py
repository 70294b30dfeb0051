"""Several heads: consensus on eigenvectors of the summed value matrix, opposite groups on a nonlinear eigenvector."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Outcome, Result, ShapeError, as_float64, formula, require_positive

from .basis import ArrayLike, Numbers, attention_matrices, one_pair, value_matrix
from .block_spectrum import BlockSpectrum
from .clusters import checked_clusters, clustered_spectrum, tangent_basis
from .spectra import consensus_spectrum


@formula("altafini2025", "section 7, multi-head", erratum="altafini2025-E15")
def multihead_consensus_spectrum(values: ArrayLike, k: int, n_tokens: int) -> BlockSpectrum:
    """Tangent spectrum at consensus with several heads: that of one head whose value matrix is the sum.

    Args:
        values: (..., heads, d, d).
        k: number of the eigenvalue of the sum, from 0 in descending order of the real part.
        n_tokens: number of tokens.
    """
    matrices = value_matrix(values, "values")
    if matrices.ndim < 3:
        raise ShapeError(f"values must have shape (..., heads, d, d); got {tuple(matrices.shape)}.")
    return consensus_spectrum(matrices.sum(-3), k, n_tokens)


@formula("separatrix", "block spectrum of clustering equilibria, several heads")
def multihead_cluster_spectrum(
    couplings: ArrayLike, values: ArrayLike, clusters: ArrayLike, sizes: ArrayLike, beta: Numbers = 1.0
) -> BlockSpectrum:
    """``cluster_spectrum`` for several heads: both blocks are sums over heads.

    Args:
        couplings, values: (..., heads, d, d).
        clusters: (..., m, d), unit vectors.
        sizes: m numbers of tokens, or weights.
        beta: inverse temperature.
    """
    logits, matrices = attention_matrices(couplings, values, beta, heads=True)
    if matrices.ndim < 3:
        raise ShapeError(f"values must have shape (..., heads, d, d); got {tuple(matrices.shape)}.")
    points, counts = checked_clusters(clusters, sizes, matrices.shape[-1])
    return clustered_spectrum(logits, matrices, points, counts)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class OppositeDirection(Result):
    """A direction v on which equal groups at +v and -v rest; NaN where Newton's method failed."""

    vector: Float[Tensor, "*batch d"]
    multiplier: Float[Tensor, "*batch"]
    residual: Float[Tensor, "*batch"]
    outcome: Int[Tensor, "*batch"]


@formula("separatrix", "balanced bipartite states of several heads")
def balanced_direction(
    couplings: ArrayLike,
    values: ArrayLike,
    start: ArrayLike,
    beta: Numbers = 1.0,
    tol: int | float = 1e-11,
    max_steps: int = 50,
) -> OppositeDirection:
    r"""A direction on which equally many tokens at +v and at -v rest, several heads; Newton on the sphere.

    .. math:: \sum_h \tanh(\beta\, v' M_h v)\, V_h v = \gamma v

    Args:
        couplings, values: (heads, d, d).
        start: (..., d), initial directions; each batch element is solved on its own.
        beta: inverse temperature.
        tol: largest residual of a solution.
        max_steps: Newton steps.

    Returns:
        Directions with the outcome of each start; elements that failed hold NaN.
    """
    logits, matrices = one_pair(couplings, values, beta)
    if matrices.ndim != 3:
        raise ShapeError(f"values must have shape (heads, d, d); got {tuple(matrices.shape)}.")
    require_positive(tol, "tol")
    vector = torch.nn.functional.normalize(as_float64(start, "start"), dim=-1)
    for _ in range(max_steps):
        pull, slope = _pull_and_slope(logits, matrices, vector)
        basis = tangent_basis(vector)
        gamma = (pull * vector).sum(-1)
        inner = basis.mT @ slope @ basis - gamma[..., None, None] * torch.eye(basis.shape[-1], dtype=torch.float64)
        step = -(torch.linalg.pinv(inner) @ (basis.mT @ pull.unsqueeze(-1))).squeeze(-1)
        length = step.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        step = step * (0.5 / length).clamp(max=1.0)
        vector = torch.nn.functional.normalize(vector + (basis @ step.unsqueeze(-1)).squeeze(-1), dim=-1)
    pull, _ = _pull_and_slope(logits, matrices, vector)
    gamma = (pull * vector).sum(-1)
    residual = (pull - gamma.unsqueeze(-1) * vector).norm(dim=-1)
    good = residual <= tol * matrices.abs().amax().clamp_min(1.0)
    outcome = torch.where(good, int(Outcome.CONVERGED), int(Outcome.OUT_OF_STEPS))
    return OppositeDirection(
        vector.where(good.unsqueeze(-1), torch.nan), gamma.where(good, torch.nan), residual, outcome
    )


def _pull_and_slope(logits: Tensor, values: Tensor, vector: Tensor) -> tuple[Tensor, Tensor]:
    tilt = torch.tanh(torch.einsum("...d,hde,...e->...h", vector, logits, vector))
    moved = torch.einsum("hde,...e->...hd", values, vector)
    gradient = torch.einsum("hde,...e->...hd", logits + logits.mT, vector)
    pull = (tilt.unsqueeze(-1) * moved).sum(-2)
    slope = torch.einsum("...h,hde->...de", tilt, values)
    slope = slope + torch.einsum("...h,...hd,...he->...de", 1 - tilt**2, moved, gradient)
    return pull, slope
