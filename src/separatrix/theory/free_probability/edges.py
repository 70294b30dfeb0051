"""Spectral edges of D W, where D is a diagonal of slopes and W a random matrix in general position to it.

For the Jacobian of a network D holds the slopes of the activation. Slopes are given as weighted values, so that exact
atoms (saturated units) stay exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import formula

from .law import AbstractLaw, ends_meet, require_positive_law
from .reflected import reflect
from .search import minimum, root_of_decreasing

_LOG_GAP = (-32.0, 14.0)
"""Logarithms of the search interval for kappa - max D, relative to max D: about 1e-14 to 1e6."""


@formula("separatrix", "edge of D times an elliptic matrix")
def elliptic_radius(
    slopes: Float[Tensor, "*batch k"],
    weights: Float[Tensor, "*batch k"],
    weight_var: Float[Tensor, "*batch"],
    tau: float,
) -> Float[Tensor, "*batch"]:
    r"""Spectral radius of D W for W elliptic with correlation tau, N to infinity.

    .. math:: r = \kappa \sqrt{V\,E[(d/(\kappa-d))^2]},\qquad E[(d/(\kappa-d))^2] = |\tau|\,E[d/(\kappa-d)]

    It is attained on the real axis for tau > 0 and on the imaginary axis for tau < 0; at tau = 0 it is
    sqrt(V E d^2).

    Args:
        slopes: values d of the diagonal, not negative unless tau = 0.
        weights: their probabilities, summing to 1.
        weight_var: variance of an entry of W times the width.
        tau: correlation of W_ij and W_ji.

    Cost: about 60 passes over the slopes (a millisecond for 600 of them).
    """
    if tau == 0:
        return (weight_var * (weights * slopes.square()).sum(-1)).sqrt()
    top = slopes.amax(-1)
    scale = torch.where(top > 0, top, 1.0)

    def sums(log_gap: Tensor) -> tuple[Tensor, Tensor]:
        ratio = slopes / (top + scale * log_gap.exp() - slopes.movedim(-1, 0)).movedim(0, -1)
        return (weights * ratio).sum(-1), (weights * ratio.square()).sum(-1)

    def balance(log_gap: Tensor) -> Tensor:
        first, second = sums(log_gap)
        return second - abs(tau) * first

    bounds = (torch.full_like(top, _LOG_GAP[0]), torch.full_like(top, _LOG_GAP[1]))
    log_gap = root_of_decreasing(balance, *bounds)
    _, second = sums(log_gap)
    return (top + scale * log_gap.exp()) * (weight_var * second).sqrt()


@formula("separatrix", "edge of D times a symmetric matrix")
def slopes_edge(
    slopes: Float[Tensor, "*batch k"], weights: Float[Tensor, "*batch k"], law: AbstractLaw
) -> Float[Tensor, "*batch"]:
    """The right edge of D W for symmetric W with the given law, D >= 0 given by weighted values.

    Zero for a law without positive values: then D W, which has the spectrum of sqrt(D) W sqrt(D), has none either.
    """
    top = slopes.amax(-1)
    if law.edges()[1] <= 0:
        return torch.zeros_like(top)
    scale = torch.where(top > 0, top, 1.0)

    def moment(kappa: Tensor) -> Tensor:
        gap = kappa[..., None] - slopes[..., None, :]
        return (weights[..., None, :] * slopes[..., None, :] / gap).sum(-1)

    return _edge(moment, top, scale, law)


@formula("separatrix", "edges of a free product")
def product_edge(positive: AbstractLaw, other: AbstractLaw, *, left: bool = False) -> float:
    """The right edge of a free product, or its left edge.

    Raises:
        InvalidInput: the first law has negative values.
    """
    require_positive_law(positive, "positive")
    low, high = other.edges()
    if left and low >= 0:
        return _inner_edge(positive, other)
    if left or high <= 0:
        return 0.0 - product_edge(positive, reflect(other), left=not left)  # no minus zero
    top = torch.tensor(positive.edges()[1], dtype=torch.float64)
    if ends_meet(positive, float(top), other, high):
        return float(top) * high
    return float(_edge(functools.partial(_real_moment, positive), top, top, other))


def _inner_edge(first: AbstractLaw, second: AbstractLaw) -> float:
    """The left edge of the product of two positive laws: the largest value of kappa z T / (1 + T) left of both.

    T = M_A(kappa) = M_B(z) < -1 between zero and the supports. If a law reaches down to zero, so does the product.
    """
    low, other_low = first.edges()[0], second.edges()[0]
    if low == 0 or other_low == 0 or ends_meet(first, low, second, other_low):
        return low * other_low

    def below(logit: Tensor) -> Tensor:
        kappa = low * torch.sigmoid(logit)
        y = _real_moment(first, kappa)
        return -torch.nan_to_num(kappa * second.inverse_moment(y) * y / (1 + y), nan=-torch.inf)

    reach = torch.tensor(32.0, dtype=torch.float64)
    return -float(minimum(below, -reach, reach))


def _real_moment(law: AbstractLaw, kappa: Tensor) -> Tensor:
    return kappa * law.stieltjes(torch.complex(kappa, torch.zeros_like(kappa))).real - 1


def _edge(moment: Callable[[Tensor], Tensor], top: Tensor, scale: Tensor, law: AbstractLaw) -> Tensor:
    """The least value of kappa z T / (1 + T) over kappa right of D, with T = E[d/(kappa-d)] and M_W(z) = T.

    There kappa is z-transform coordinate of D and z that of W; the map from kappa to the outside of the spectrum
    turns back at the edge.
    """

    def outside(log_gap: Tensor) -> Tensor:
        kappa = top[..., None] + scale[..., None] * log_gap.exp()
        y = moment(kappa)
        return torch.nan_to_num(kappa * law.inverse_moment(y) * y / (1 + y), nan=torch.inf)

    bounds = (torch.full_like(top, _LOG_GAP[0]), torch.full_like(top, _LOG_GAP[1]))
    return torch.where(top > 0, minimum(outside, *bounds), 0.0)
