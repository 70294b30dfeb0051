r"""Gradients where each state attends to a few others, and through the weights of attention.

A path of degree s from :math:`h_t` to :math:`s_{t+k}` takes s recurrent steps and s + 1 hops of attention.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, ShapeError, formula, require_integer

from .uniform_attention import Numbers, as_eigenvalues, checked_pair


@formula("kerg2022", "Theorem B.1.39", erratum="kerg2022-sparse-bound")
def sparse_attention_bound(
    eigenvalue: Numbers, n_attended: int, degree: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Float[Tensor, "*batch"]:
    r"""Least eigenvalue of :math:`ds_{t+k}/dh_t` when each state attends evenly to at most kappa others.

    .. math:: p_k(\lambda) \ge b^{d+1}\,\min(1,\lambda)^d\,\kappa^{-(d+1)}

    d is the least degree of a path of attention hops alone from t to t + k. It holds for every time; equality is
    reached. Nothing is known for eigenvalues that are not positive.

    Args:
        eigenvalue: lambda, a positive eigenvalue of V.
        n_attended: kappa.
        degree: d, recurrent steps of the path; its hops are one more.
        mix: a and b, neither negative.

    Raises:
        OutsideTheory: an eigenvalue is not positive and real.
    """
    kappa = require_integer(n_attended, "n_attended", at_least=1)
    degree = require_integer(degree, "degree", at_least=0)
    a, b = checked_pair(mix)
    if a < 0 or b < 0:
        raise InvalidInput(f"mix must not be negative, or paths could cancel; got {(a, b)}.")
    values = as_eigenvalues(eigenvalue)
    if values.is_complex() or not bool((values > 0).all()):
        raise OutsideTheory("eigenvalue must be real and positive: paths through others may cancel.")
    return b ** (degree + 1) * values.clamp_max(1.0) ** degree / kappa ** (degree + 1)


@formula("kerg2022", "Remark B.1.40, Eq. (B.1.291)", erratum="kerg2022-single-attention")
def single_attention_gradient(
    eigenvalue: Numbers, k: int, degree: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Tensor:
    r"""Eigenvalue of :math:`ds_{t+k}/dh_t` when every state from t + d on attends to :math:`h_{t+d}` alone.

    .. math:: p_k = b\,x^d\,\frac{1-x^{k-d+1}}{1-x} + a\,x^k, \qquad x = a\lambda

    States before t + d attend to what was before t. The eigenvalue may be anything.

    Args:
        eigenvalue: lambda, any shape.
        k: how many steps later, at least d.
        degree: d.
        mix: a and b.
    """
    degree = require_integer(degree, "degree", at_least=0)
    k = require_integer(k, "k", at_least=degree)
    a, b = checked_pair(mix)
    x = a * as_eigenvalues(eigenvalue)
    total = torch.zeros_like(x)
    for _ in range(k - degree + 1):  # Horner: the quotient is 0/0 at x = 1
        total = 1 + x * total
    return b * x**degree * total + a * x**k


@formula("kerg2022", "Lemma B.1.15")
def alignment_gradient(
    weights: Float[Tensor, "t k"],
    hidden: Float[Tensor, "t k h"],
    by_state: Float[Tensor, "t h"],
    by_parameter: Float[Tensor, "t k p"],
    mix: tuple[float | int, float | int] = (1.0, 1.0),
) -> Float[Tensor, " p"]:
    r"""Gradient of a loss by parameters theta of the alignment function.

    .. math:: \frac{dL}{d\theta} = \sum_{j,t}\alpha_{j,t}\,b\,\frac{dL}{ds_t}\cdot h_j
        \sum_i(1_{i=j}-\alpha_{i,t})\frac{\partial e_{i,t}}{\partial\theta}

    A state that gets no attention teaches nothing about attention.

    Args:
        weights: of attention at each step, 0 for empty places.
        hidden: states in those places.
        by_state: total derivative of the loss by the macro-state of each step.
        by_parameter: derivative of each logit by theta, flat, states held fixed.
        mix: a and b.
    """
    _, b = checked_pair(mix)
    if not weights.shape == hidden.shape[:2] == by_parameter.shape[:2] or by_state.shape != (
        hidden.shape[0],
        hidden.shape[2],
    ):
        raise ShapeError(
            "weights (t, k), hidden (t, k, h), by_state (t, h) and by_parameter (t, k, p) must agree; got "
            f"{tuple(weights.shape)}, {tuple(hidden.shape)}, {tuple(by_state.shape)}, {tuple(by_parameter.shape)}."
        )
    by_weight = b * torch.einsum("th,tkh->tk", by_state, hidden)
    centred = by_weight - (weights * by_weight).sum(-1, keepdim=True)
    return torch.einsum("tk,tkp->p", weights * centred, by_parameter)
