r"""Linear CKA: how similar two representations of the same samples are, up to rotation and scale.

Source: Kornblith et al. 2019 (centred); the unbiased estimator of HSIC is that of Song et al. 2012.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_finite
from separatrix.core.errors import ShapeError


def linear_cka(
    x: Float[Tensor, "*batch p1 d1"], y: Float[Tensor, "*batch p2 d2"], *, unbiased: bool = False
) -> Float[Tensor, "*batch"]:
    r"""Linear centred kernel alignment of two representations of the same P samples.

    .. math:: \frac{\langle K, L\rangle}{|K|\,|L|}, \qquad K = H x x^\top H,\ L = H y y^\top H

    The plain estimator is biased towards 1 when P is not much larger than the dimensions; ``unbiased`` replaces each
    inner product by the unbiased estimator of HSIC, which may come out slightly negative.

    Args:
        x: features of one layer, one row per sample.
        y: features of the other.
        unbiased: use the unbiased estimator, which needs at least 4 samples.

    Returns:
        1 for representations equal up to rotation and scale, NaN where one does not vary over samples.

    Raises:
        ShapeError: different numbers of samples, or too few.

    Cost: O(P^2 (d1 + d2)).
    """
    if x.shape[-2] != y.shape[-2] or x.shape[-2] < (4 if unbiased else 2):
        raise ShapeError(
            f"linear_cka needs the same samples on both sides, at least {4 if unbiased else 2}; "
            f"got {x.shape[-2]} and {y.shape[-2]}."
        )
    require_finite(x, "x")
    require_finite(y, "y")
    x, y = x.to(torch.float64), y.to(torch.float64)
    k, l = x @ x.mT, y @ y.mT  # noqa: E741
    inner = _unbiased_inner if unbiased else _centred_inner
    scale = (inner(k, k).clamp_min(0) * inner(l, l).clamp_min(0)).sqrt()
    return inner(k, l) / torch.where(scale > 0, scale, torch.nan)


def centre(kernel: Float[Tensor, "*batch p p"]) -> Float[Tensor, "*batch p p"]:
    """H K H with H = I - 1/P: the kernel of features whose mean over samples is zero."""
    kernel = kernel - kernel.mean(-1, keepdim=True)
    return kernel - kernel.mean(-2, keepdim=True)


def _centred_inner(k: Tensor, l: Tensor) -> Tensor:  # noqa: E741
    return (centre(k) * centre(l)).sum((-2, -1))


def _unbiased_inner(k: Tensor, l: Tensor) -> Tensor:  # noqa: E741
    """Unbiased HSIC times P (P - 3): diagonals removed, means over distinct samples only."""
    count = k.shape[-1]
    off = 1 - torch.eye(count, dtype=k.dtype, device=k.device)
    k, l = k * off, l * off  # noqa: E741
    total = (k * l).sum((-2, -1))
    sums = k.sum((-2, -1)) * l.sum((-2, -1)) / ((count - 1) * (count - 2))
    cross = (k.sum(-1) * l.sum(-1)).sum(-1) * 2 / (count - 2)
    return total + sums - cross
