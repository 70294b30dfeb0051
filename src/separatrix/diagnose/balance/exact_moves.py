r"""Move weight between the two sides of a layer pair without changing what the pair computes.

Rows are one per hidden unit: ``first`` (h, m1) with the bias appended, ``second`` (h, m2). Homogeneous units allow
one factor per unit; linear units any change of basis, of which the nearest to the present weights is taken.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.errors import OutsideTheory
from separatrix.core.formula import formula
from separatrix.matrices import balanced_singular_values

_HALVINGS = 200
"""Bisection steps on the logarithm of a factor: from a bracket of 1e3 to rounding in float64."""


@formula("separatrix", "balance of homogeneous units")
def unit_factors(
    first_square: Float[Tensor, "*batch"],
    second_square: Float[Tensor, "*batch"],
    balance: float,
    degree: float = 1.0,
) -> Float[Tensor, "*batch"]:
    r"""Factors that give homogeneous units a balance: first side divided by alpha, second times alpha to the degree p.

    .. math:: p\,b\,\alpha^{2p} - a\,\alpha^{-2} = \lambda, \qquad
       p = 1:\ \alpha^2 = \frac{\lambda + \sqrt{\lambda^2 + 4ab}}{2b}

    written without cancellation for either sign of lambda. Units with a = 0 or b = 0 get NaN: no factor exists.

    Args:
        first_square: a, the squared norm of each unit's incoming weights and bias.
        second_square: b, the squared norm of its outgoing weights.
        balance: lambda, the same for all.
        degree: p, the degree of homogeneity of the activation.

    Returns:
        alpha, positive.
    """
    alive = (first_square > 0) & (second_square > 0)
    a, b = torch.where(alive, first_square, 1.0), torch.where(alive, second_square, 1.0)
    if degree == 1.0:
        root = (balance**2 + 4 * a * b).sqrt()
        square = (balance + root) / (2 * b) if balance >= 0 else 2 * a / (root - balance)
        alpha = square.sqrt()
    else:
        alpha = _bisect(a, b, balance, degree)
    return torch.where(alive, alpha, torch.nan)


def _bisect(a: Tensor, b: Tensor, balance: float, degree: float) -> Tensor:
    """Root in log alpha of the increasing function p b alpha^2p - a alpha^-2 - lambda."""
    low, high = torch.full_like(a, -350.0 / max(degree, 1.0)), torch.full_like(a, 350.0 / max(degree, 1.0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = degree * b * torch.exp(2 * degree * middle) - a * torch.exp(-2 * middle) > balance
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return torch.exp((low + high) / 2)


def rescale_units(
    first: Float[Tensor, "h m1"], second: Float[Tensor, "h m2"], balance: float, degree: float, unit_of: Tensor
) -> tuple[Float[Tensor, "h m1"], Float[Tensor, "h m2"], Bool[Tensor, " h"]]:
    """Both sides with the balance set by one factor per unit, and which units were dead and left as they are.

    ``unit_of`` (h) numbers the units; rows with the same number share a factor (rotation pairs) and their balance is
    the mean over them.
    """
    n_units = int(unit_of.max()) + 1
    size = torch.zeros(n_units, dtype=first.dtype).index_add(0, unit_of, torch.ones_like(first[:, 0]))
    a = torch.zeros_like(size).index_add(0, unit_of, first.square().sum(-1))
    b = torch.zeros_like(size).index_add(0, unit_of, second.square().sum(-1))
    factors = unit_factors(a / size, b / size, balance, degree)[unit_of]
    dead = factors.isnan()
    factors = torch.where(dead, 1.0, factors).unsqueeze(-1)
    return first / factors, second * factors**degree, dead


def rotate_pair(
    first: Float[Tensor, "h m1"], second: Float[Tensor, "h m2"], balance: float
) -> tuple[Float[Tensor, "h m1"], Float[Tensor, "h m2"]]:
    """Both sides of a linear pair with D = balance * I and the same product, nearest to the present weights.

    Thin QR of both sides, an SVD of the small core, balanced singular values, and the rotation of the hidden units
    that minimises the distance moved (orthogonal Procrustes).

    Raises:
        OutsideTheory: positive balance with more hidden units than the second side has columns, or the mirror case.

    Cost: O(h^2 (m1 + m2) + h^3).
    """
    n_hidden, n_first, n_second = first.shape[0], first.shape[1], second.shape[1]
    if balance > 0 and n_hidden > n_second:
        raise OutsideTheory(
            f"a positive balance needs n_hidden <= n_out ({n_hidden} hidden units, {n_second} outputs): D = lambda I "
            "does not exist. Use balance <= 0."
        )
    if balance < 0 and n_hidden > n_first:
        raise OutsideTheory(
            f"a negative balance needs n_hidden <= n_in ({n_hidden} hidden units, {n_first} inputs, bias included): "
            "D = lambda I does not exist. Use balance >= 0."
        )
    basis1, core1 = torch.linalg.qr(first.mT)  # (m1, k1), (k1, h)
    basis2, core2 = torch.linalg.qr(second.mT)
    u, singular, vh = torch.linalg.svd(core2 @ core1.mT, full_matrices=True)  # (k2, k2), (k1, k1)
    padded = torch.zeros(n_hidden, dtype=singular.dtype)
    padded[: singular.numel()] = singular
    s1, s2 = balanced_singular_values(padded, torch.tensor(balance, dtype=padded.dtype))
    new1 = _stretch(s1, basis1 @ vh.mT)
    new2 = _stretch(s2, basis2 @ u)
    left, _, right = torch.linalg.svd(first @ new1.mT + second @ new2.mT)
    rotation = left @ right
    return rotation @ new1, rotation @ new2


def _stretch(singular: Float[Tensor, " h"], directions: Float[Tensor, "m k"]) -> Float[Tensor, "h m"]:
    """Rows singular_i * direction_i, zero rows where there are fewer directions than hidden units."""
    n_hidden, n_columns, count = singular.shape[0], directions.shape[0], directions.shape[1]
    rows = torch.zeros(n_hidden, n_columns, dtype=singular.dtype)
    kept = min(count, n_hidden)
    rows[:kept] = singular[:kept].unsqueeze(-1) * directions[:, :kept].mT
    return rows
