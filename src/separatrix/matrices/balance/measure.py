"""The balance of two adjacent layers: what gradient flow conserves, and how close it is to a multiple of the identity.

For ``y = w2 w1 x`` the matrix ``D = w2' w2 - w1 w1'`` does not change under gradient flow. The weights are balanced
with coefficient ``balance`` when ``D = balance * I`` on every hidden direction that carries any weight.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Result, ShapeError


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BalanceFit(Result):
    """The multiple of the identity nearest to the balance matrix, and what is left over."""

    balance: Float[Tensor, "*batch"]
    """Coefficient: the mean of D over the hidden directions, weighted by the weight they carry."""
    residual: Float[Tensor, "*batch"]
    """``|Q (D - balance)|`` relative to ``|Q|_F |Q|_2^2`` with Q the stacked weights; rounding level when balanced."""
    mean: Float[Tensor, "*batch"]
    """Trace of D over the number of hidden units: the best fit when every hidden direction counts equally."""
    spread: Float[Tensor, "*batch"]
    """Root mean square deviation of the eigenvalues of D from ``mean``."""


def stack_weights(w1: Float[Tensor, "*batch h i"], w2: Float[Tensor, "*batch o h"]) -> Float[Tensor, "*batch io h"]:
    """Both layers as one matrix ``[w1'; w2]`` with a column per hidden unit."""
    require_pair(w1, w2)
    return torch.cat([w1.mT, w2], dim=-2)


def balance_matrix(w1: Float[Tensor, "*batch h i"], w2: Float[Tensor, "*batch o h"]) -> Float[Tensor, "*batch h h"]:
    """The conserved matrix ``D = w2' w2 - w1 w1'``."""
    require_pair(w1, w2)
    return w2.mT @ w2 - w1 @ w1.mT


def fit_balance(w1: Float[Tensor, "*batch h i"], w2: Float[Tensor, "*batch o h"]) -> BalanceFit:
    """Fit ``balance * I`` to the balance matrix of a pair of layers.

    Hidden directions without any weight stay without weight for ever, so they do not count: ``residual`` measures
    ``D - balance`` only where the stacked weights act. Cost: products of the weights and one singular value each.

    Example:
        >>> import torch
        >>> fit = fit_balance(torch.eye(2, dtype=torch.float64), 2 * torch.eye(2, dtype=torch.float64))
        >>> float(fit.balance), float(fit.residual)
        (3.0, 0.0)
    """
    stacked = stack_weights(w1, w2)
    conserved = balance_matrix(w1, w2)
    n_hidden = stacked.shape[-1]
    weight = stacked.square().sum((-2, -1))
    acted = stacked @ conserved
    tiny = torch.finfo(stacked.dtype).tiny
    balance = (acted * stacked).sum((-2, -1)) / weight.clamp_min(tiny)
    left_over = torch.linalg.matrix_norm(acted - balance[..., None, None] * stacked)
    scale = weight.sqrt() * torch.linalg.matrix_norm(stacked, ord=2).square()
    mean = conserved.diagonal(dim1=-2, dim2=-1).mean(-1)
    identity = torch.eye(n_hidden, dtype=stacked.dtype, device=stacked.device)
    spread = torch.linalg.matrix_norm(conserved - mean[..., None, None] * identity) / n_hidden**0.5
    return BalanceFit(balance, left_over / scale.clamp_min(tiny), mean, spread)


def require_pair(w1: Tensor, w2: Tensor) -> None:
    """Refuse two weight matrices that do not follow one another."""
    fits = w1.ndim >= 2 and w2.ndim >= 2 and w1.shape[-2] == w2.shape[-1] and w1.shape[:-2] == w2.shape[:-2]
    if not fits or 0 in (*w1.shape[-2:], *w2.shape[-2:]):
        raise ShapeError(
            "w1 must have shape (..., hidden, in) and w2 (..., out, hidden) with the same hidden size and batch; "
            f"got {tuple(w1.shape)} and {tuple(w2.shape)}."
        )
