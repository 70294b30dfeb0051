"""The source's own solution for equal input and output sizes, with its misprints mended, evaluated as it stands.

Kept beside ``BalancedFlow`` for comparison: it needs ``n_in = n_out = n_hidden``, a balance other than zero in its
printed form, and an invertible B, and loses digits where B is badly conditioned.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import OutsideTheory, formula
from separatrix.core.arithmetic.linear_systems import inv, solve
from separatrix.matrices import require_pair

Square: TypeAlias = Float[Tensor, "n n"]
"""All matrices have one size."""


@formula("anguita2024", "Theorem 3.3.1, item 3", erratum="anguita2024-3.3.1-item3")
def equal_size_gram(
    w1: Square, w2: Square, corr_yx: Square, t: float, balance: float, tau: float = 1.0
) -> Float[Tensor, "m m"]:
    r"""``Q Q'`` at time t for equal sizes: :math:`Z [\ldots]^{-1} Z^\top`."""
    left, bracket = equal_size_parts(w1, w2, corr_yx, t, balance, tau)
    return left @ solve(bracket, left.mT)


@formula("anguita2024", "Theorem 3.3.1, item 3", erratum="anguita2024-3.3.1-item3")
def equal_size_parts(
    w1: Square, w2: Square, corr_yx: Square, t: float, balance: float, tau: float = 1.0
) -> tuple[Float[Tensor, "m n"], Square]:
    """Z and the bracket of Theorem 3.3.1, item 3; the document prints the bracket without its inverse."""
    require_pair(w1, w2)
    if not w1.shape == w2.shape == corr_yx.shape or w1.shape[-1] != w1.shape[-2]:
        raise OutsideTheory("Theorem 3.3.1 needs n_in = n_hidden = n_out; BalancedFlow covers all sizes.")
    u, s, vh = torch.linalg.svd(corr_yx)
    mu = (s**2 + balance**2 / 4).sqrt()
    x = balance / ((balance**2 + 4 * s**2).sqrt() + 2 * s)  # the printed quotient, without its division by the balance
    a = 1 / (1 + x**2).sqrt()
    plus, minus = a + x * a, a - x * a
    first, second = w1 @ vh.mT, w2.mT @ u  # = R S1 V' V~ and R S2 U' U~
    b, c = second * plus + first * minus, second * minus - first * plus
    fade = torch.exp(-mu * t / tau)
    inverse = inv(b)
    turned = fade[:, None] * (c.mT @ inverse.mT) * fade
    left = torch.cat(
        [vh.mT @ (torch.diag(minus) - plus[:, None] * turned), u @ (torch.diag(plus) + minus[:, None] * turned)]
    )
    mixed = fade[:, None] * (inverse @ c)
    bracket = (
        4 * fade[:, None] * (inverse @ inverse.mT) * fade
        + torch.diag((1 - fade**2) / mu)
        - (mixed * ((fade**2 - 1) / mu)) @ mixed.mT
    )
    return left, bracket
