"""The inequalities (9) of Theorem 2 as printed and as they must read; ``is_stable`` is the one to use."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, formula, not_a_formula

from .basis import ArrayLike, Numbers, real_numbers, require_index
from .bipartite_weights import softmax_weights
from .spectra import group_sizes


@formula("altafini2025", "Theorem 2, Eq. (9)", erratum="altafini2025-E12")
def theorem2_corrected(eigenvalues: ArrayLike, k: int, strength: Numbers, n1: int, n2: int) -> Bool[Tensor, "*batch"]:
    """Theorem 2 with both signs of (9) put right: stable iff delta_l lambda_k > 0 and two inequalities hold for all j.

    Right where both groups hold at least two tokens (E13); overflows for strengths of several hundred.

    Args:
        eigenvalues: of a symmetric value matrix, descending, the first positive.
        k: number of the eigenvalue the tokens sit on.
        strength: c = beta v_k' M v_k.
        n1, n2: tokens at +v_k and -v_k, both positive.
    """
    return _theorem2(eigenvalues, k, strength, n1, n2, sign=1.0)


@not_a_formula("Theorem 2 with its misprinted signs, kept to show that they err; theorem2_corrected is the closed form")
def theorem2_printed(eigenvalues: ArrayLike, k: int, strength: Numbers, n1: int, n2: int) -> Bool[Tensor, "*batch"]:
    """Theorem 2 exactly as printed, with its two misprinted signs (erratum altafini2025-E12)."""
    return _theorem2(eigenvalues, k, strength, n1, n2, sign=-1.0)


def _theorem2(eigenvalues: object, k: int, strength: object, n1: int, n2: int, sign: float) -> Tensor:
    lam, c = real_numbers(eigenvalues, "eigenvalues"), real_numbers(strength, "strength")
    if lam.ndim < 1 or lam.shape[-1] < 2:
        raise ShapeError(f"eigenvalues must have at least 2 entries on the last axis; got shape {tuple(lam.shape)}.")
    k = require_index(k, lam.shape[-1])
    n1, n2 = group_sizes(n1, n2)  # type: ignore[assignment]
    if not (n1 and n2):
        raise InvalidInput(f"n1 and n2 must both be at least 1 token for Theorem 2; got {n1} and {n2}.")
    weights = softmax_weights(c, n1, n2)
    lam_k = lam[..., k]
    lam_j = torch.cat([lam[..., :k], lam[..., k + 1 :]], dim=-1)
    ratio = torch.exp(-2 * c)  # alpha_2 / alpha_1
    trace = (1 + sign * ratio * (n1**2 + n2**2) / (2 * n1 * n2)).unsqueeze(-1) * lam_j
    trace = trace - ((1 - ratio**2) * lam_k).unsqueeze(-1)
    product = weights.delta_1 * weights.delta_2
    mixed = weights.delta_2 * (1 - weights.leave_1) + weights.delta_1 * (1 - weights.leave_2)
    determinant = (-sign * product * lam_k**2).unsqueeze(-1) + (mixed * lam_k).unsqueeze(-1) * lam_j
    determinant = determinant - weights.mean_pull.unsqueeze(-1) * lam_j**2
    transversal = (weights.delta_1 * lam_k > 0) & (weights.delta_2 * lam_k > 0)
    return transversal & ((trace < 0) & (determinant < 0)).all(-1)
