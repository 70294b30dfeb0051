"""Averages over one unit of a network whose field reacts to itself: h - a phi(h) = y with y Gaussian.

``a`` is the strength of the reaction (zero for matrices whose two sides are independent). Integrals are taken over h
instead of y, because dy = (1 - a phi'(h)) dh needs no inversion; they are split where the slope of phi jumps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import formula
from separatrix.core.networks.activations import Activation

_REACH = 8.5
"""Standard deviations of y that are covered; the mass beyond is 2e-17."""

_PANELS = 32
_NODES = 12
_FEATURES = (-6.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Extra cuts where activations bend, so that a field much wider than 1 does not step over them."""

_POINTS, _LENGTHS = (torch.from_numpy(part) for part in numpy.polynomial.legendre.leggauss(_NODES))


class FieldAverages(NamedTuple):
    """Expectations over one unit; h, phi, d = phi'(h)."""

    phi: Tensor
    """E phi."""
    phi_square: Tensor
    """E phi^2."""
    response: Tensor
    """E[d / (1 - a d)], the change of phi with its external field; also E[phi (y - E y)] / Var y, by parts."""
    response_square: Tensor
    """E[(d / (1 - a d))^2]."""
    slope: Tensor
    """E d."""
    slope_square: Tensor
    """E d^2."""
    slopes: Tensor
    """Values of d, on a last axis."""
    weights: Tensor
    """Their probabilities."""


@formula("separatrix", "averages over a reacting field")
def quadrature_averages(
    activation: Activation,
    reaction: Float[Tensor, "*batch"],
    mean: Float[Tensor, "*batch"],
    variance: Float[Tensor, "*batch"],
) -> FieldAverages:
    """The averages for any activation, by Gauss-Legendre panels; accurate to about 1e-12.

    Args:
        activation: with its kinks.
        reaction: a, with a times the largest slope below 1.
        mean: of y.
        variance: of y, positive.
    """
    h, lengths = field_nodes(activation, reaction, mean, variance)
    phi, d = activation.phi(h), activation.dphi(h)
    a = reaction[..., None]
    y = h - a * phi
    deviation = variance.sqrt()[..., None]
    bell = torch.exp(-(((y - mean[..., None]) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
    weights = bell * (1 - a * d) * lengths
    gain = d / (1 - a * d)

    def average(values: Tensor) -> Tensor:
        return (weights * values).sum(-1)

    return FieldAverages(
        average(phi), average(phi * phi), average(gain), average(gain * gain), average(d), average(d * d), d, weights
    )


def field_nodes(
    activation: Activation, reaction: Tensor, mean: Tensor, variance: Tensor
) -> tuple[Float[Tensor, "*batch k"], Float[Tensor, "*batch k"]]:
    """Points h and lengths of a composite rule that covers all y within 8.5 standard deviations of its mean."""
    reach = _REACH * variance.sqrt()
    low, high = mean - reach, mean + reach
    zero = float(activation.phi(torch.zeros(1, dtype=torch.float64)).abs())
    steep = (1 - reaction.clamp_min(0) * activation.max_slope).clamp_min(1e-6)
    bounded = (
        reaction.abs() * activation.bound if math.isfinite(activation.bound) else torch.full_like(reach, torch.inf)
    )
    linear = (torch.maximum(low.abs(), high.abs()) + reaction.abs() * zero) / steep
    low, high = torch.maximum(low - bounded, -linear), torch.minimum(high + bounded, linear)
    even = torch.linspace(0, 1, _PANELS + 1, dtype=torch.float64)
    inner = torch.tensor([*_FEATURES, *activation.kinks], dtype=torch.float64).expand(*low.shape, -1)
    inner = torch.minimum(torch.maximum(inner, low[..., None]), high[..., None])
    cuts = torch.cat([low[..., None] + (high - low)[..., None] * even, inner], -1).sort(-1).values
    half = (cuts[..., 1:] - cuts[..., :-1])[..., None] / 2
    middle = (cuts[..., 1:] + cuts[..., :-1])[..., None] / 2
    return (middle + half * _POINTS).flatten(-2), (half * _LENGTHS).flatten(-2)


@formula("separatrix", "averages over a reacting field, hard-tanh")
def hardtanh_averages(
    reaction: Float[Tensor, "*batch"], mean: Float[Tensor, "*batch"], variance: Float[Tensor, "*batch"]
) -> FieldAverages:
    """The averages for the hard-tanh, in closed form: h = y / (1 - a) inside |y| < 1 - a, saturated outside."""
    edge = 1 - reaction
    deviation = variance.sqrt()
    lower, upper = (-edge - mean) / deviation, (edge - mean) / deviation
    below, above = torch.special.ndtr(lower), torch.special.ndtr(-upper)
    inside = _between(lower, upper)
    bell_lower, bell_upper = _bell(lower), _bell(upper)
    first = mean * inside - deviation * (bell_upper - bell_lower)
    second = (mean.square() + variance) * inside - variance * (upper * bell_upper - lower * bell_lower)
    second = second - 2 * mean * deviation * (bell_upper - bell_lower)
    phi = above - below + first / edge
    phi_square = above + below + second / edge.square()
    slopes = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(*inside.shape, 2)
    weights = torch.stack([below + above, inside], -1)
    return FieldAverages(phi, phi_square, inside / edge, inside / edge.square(), inside, inside, slopes, weights)


def _bell(t: Tensor) -> Tensor:
    return torch.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def _between(lower: Tensor, upper: Tensor) -> Tensor:
    """Normal probability of (lower, upper), by erf so that narrow and far intervals keep their digits."""
    return (torch.erf(upper / math.sqrt(2)) - torch.erf(lower / math.sqrt(2))) / 2
