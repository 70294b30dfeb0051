"""How much two opposite groups of tokens see of themselves and of each other, evaluated without overflow.

n_1 tokens at +v and n_2 at -v; p is the weight a token of the first group gives to its own group, q the same for the
second. What the spectrum needs are 1 - p, 1 - q, delta = 2p - 1 and 2q - 1, and their mean s = p + q - 1.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import formula, suggest_options

from .basis import Numbers, real_numbers, token_counts


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class BipartiteWeights:
    """Attention between two opposite groups: what leaves each group, the net pull on each, and the mean pull."""

    leave_1: Float[Tensor, "*batch"]
    leave_2: Float[Tensor, "*batch"]
    delta_1: Float[Tensor, "*batch"]
    delta_2: Float[Tensor, "*batch"]
    mean_pull: Float[Tensor, "*batch"]


def log_ratio(n1: Tensor | int | float, n2: Tensor | int | float) -> Float[Tensor, "*batch"]:
    """h = ln(n_1 / n_2), accurate for nearly equal groups of any size."""
    first, second = torch.as_tensor(n1, dtype=torch.float64), torch.as_tensor(n2, dtype=torch.float64)
    smaller = torch.minimum(first, second)
    return (first - second).sign() * torch.log1p((first - second).abs() / smaller)  # infinite for an empty group


@formula("altafini2025", "Lemma 7, Eq. (8)", erratum="altafini2025-E8")
def softmax_weights(strength: Numbers, n1: Numbers, n2: Numbers) -> BipartiteWeights:
    r"""Softmax attention between n_1 tokens at +v and n_2 at -v.

    .. math:: p = \sigma(2c + h), \quad q = \sigma(2c - h), \quad \delta_{1,2} = \tanh(c \pm h/2), \quad
              h = \ln(n_1/n_2)

    Args:
        strength: c = beta v' M v, a number or an array.
        n1, n2: tokens (or real weights) in each group, both positive.

    Source: altafini2025, Lemma 7, in a form that does not overflow (its exponentials do for \|c\| > 700).
    """
    c = real_numbers(strength, "strength")
    h = log_ratio(*token_counts(n1, n2))
    twice, span = 2 * c.abs(), h.abs()
    mean = -torch.expm1(-2 * twice) / (1 + torch.exp(-2 * twice) + torch.exp(span - twice) + torch.exp(-span - twice))
    return BipartiteWeights(
        leave_1=torch.sigmoid(-2 * c - h),
        leave_2=torch.sigmoid(-2 * c + h),
        delta_1=torch.tanh(c + h / 2),
        delta_2=torch.tanh(c - h / 2),
        mean_pull=c.sign() * mean,
    )


@formula("altafini2025", "Lemma 4", erratum="altafini2025-E3")
def uniform_weights(n1: Numbers, n2: Numbers) -> BipartiteWeights:
    """Uniform attention, the multiagent Oja flow: p = n_1/n, q = n_2/n, opposite net pulls and no mean pull."""
    first, second = (sizes.double() for sizes in token_counts(n1, n2))
    total = first + second
    delta = (first - second) / total
    return BipartiteWeights(second / total, first / total, delta, -delta, torch.zeros_like(delta))


@formula("separatrix", "doubly stochastic attention between two groups")
def sinkhorn_weights(strength: Numbers, n1: Numbers, n2: Numbers) -> BipartiteWeights:
    r"""Doubly stochastic (Sinkhorn) attention between n_1 tokens at +v and n_2 at -v.

    Balance of rows and columns gives :math:`n_1(1-p) = n_2(1-q)`, scaling leaves the cross ratio
    :math:`pq/((1-p)(1-q)) = e^{4c}` as it is, and 1 - p is the positive root of a quadratic:

    .. math:: 1 - p = \frac{2}{1 + \kappa + \sqrt{(1-\kappa)^2 + 4\kappa e^{4c}}}, \qquad \kappa = n_1/n_2
    """
    c = real_numbers(strength, "strength")
    first, second = (sizes.double() for sizes in token_counts(n1, n2))
    ratio = first / second
    root = torch.hypot(1 - ratio, 2 * ratio.sqrt() * torch.exp(2 * c.clamp(max=300.0)))
    total = 1 + ratio
    leave = 2 / (total + root)
    # root^2 - total^2 in product form keeps its digits while c is small; for large c the quotient itself has no loss
    small = 4 * ratio * torch.expm1(4 * c.clamp(max=1.0)) / (root + total) ** 2
    mean = torch.where(c < 1.0, small, (root - total) / (root + total))
    return BipartiteWeights(leave, ratio * leave, 1 - 2 * leave, 1 - 2 * ratio * leave, mean)
