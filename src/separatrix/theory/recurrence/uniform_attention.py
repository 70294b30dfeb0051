r"""Gradients of a linear recurrent network that attends evenly to its whole past: exact, and for long times.

Conventions: :math:`h_{t+1} = V s_t` and :math:`s_t = a h_t + b\,\frac1t\sum_{i\le t} h_i`, with weights of attention
that do not depend on the states, so that :math:`ds_{t+k}/dh_t` is a polynomial of V. For an eigenvalue lambda of V its
eigenvalue is :math:`p_k(\lambda)`. The document has mix (1, 1), its public code (1/2, 1/2).
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import scipy.special
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, as_float64, as_tensor, formula, require_integer, require_square
from separatrix.core.scalars import in_words, require_number

Numbers = float | int | complex | Tensor
MOST_TERMS = 10_000_000
SMALLEST = 1e-290
"""Constants below are lost among the least numbers of double precision."""


@formula("kerg2022", "Eqs. (B.1.116) and (B.1.117)")
def uniform_attention_coefficients(
    t: int, k: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Float[Tensor, " degrees"]:
    r"""Coefficients of the gradient as a polynomial of V, one per number of recurrent steps that a path takes.

    .. math:: \frac{ds_{t+k}}{dh_t} = \sum_{s=0}^{k}\chi_k(s)V^s, \qquad
        \chi_k(s) = a\,\chi_{k-1}(s-1) + \frac{b}{t+k}\sum_{j<k}\chi_j(s-1), \quad
        \chi_k(0) = \frac{b}{t+k} + a\,[k=0]

    Args:
        t: when the state was made, from 1.
        k: how many steps later its influence is asked for.
        mix: a and b.

    Returns:
        chi for s = 0 .. k.

    Cost: of the order of k^2.
    """
    t, k, (a, b) = _checked(t, k, mix)
    latest = torch.zeros(k + 1, dtype=torch.float64)
    total = torch.zeros_like(latest)
    for step in range(k + 1):
        moved = torch.zeros_like(latest)
        moved[1:] = a * latest[:-1] + b / (t + step) * total[:-1]
        moved[0] = b / (t + step) + (a if step == 0 else 0.0)
        latest = moved
        total = total + latest
    return latest


@formula("kerg2022", "Eqs. (B.1.116) and (B.1.117), summed")
def uniform_attention_gradient(
    eigenvalue: Numbers, t: int, k: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Tensor:
    r"""Eigenvalue of :math:`ds_{t+k}/dh_t` under even attention, exactly.

    .. math:: p_k = \frac{b}{t+k} + a\lambda p_{k-1} + \frac{b\lambda}{t+k}\sum_{j<k}p_j, \qquad p_0 = \frac bt + a

    Args:
        eigenvalue: lambda, any shape.
        t: when the state was made, from 1.
        k: how many steps later.
        mix: a and b.

    Cost: k steps per eigenvalue.

    Example:
        >>> uniform_attention_gradient(0.5, t=1, k=100)
        tensor(2., dtype=torch.float64)
    """
    return uniform_attention_curve(eigenvalue, t, k, mix)[..., -1]


@formula("kerg2022", "Eqs. (B.1.116) and (B.1.117), summed")
def uniform_attention_curve(
    eigenvalue: Numbers, t: int, k: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Tensor:
    """``uniform_attention_gradient`` for 0 to k steps, along a last axis of k + 1.

    Args:
        eigenvalue: lambda, any shape.
        t: when the state was made, from 1.
        k: the last number of steps.
        mix: a and b.
    """
    t, k, (a, b) = _checked(t, k, mix)
    values = as_eigenvalues(eigenvalue)
    rows = [_curve(value, t, k, a, b) for value in values.flatten().tolist()]
    return torch.tensor(rows, dtype=values.dtype).reshape(*values.shape, k + 1).to(values.device)


def _curve(value: float | complex, t: int, k: int, a: float, b: float) -> list[float | complex]:
    latest: float | complex = b / t + a
    total, curve = latest, [latest]
    for time in range(t + 1, t + k + 1):
        latest = b / time + a * value * latest + b * value / time * total
        total += latest
        curve.append(latest)
    return curve


@formula("kerg2022", "Proposition B.1.33", erratum="kerg2022-uniform-rate")
def uniform_attention_exponent(
    eigenvalue: Numbers, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Float[Tensor, "*batch"]:
    r"""The power of T with which the gradient under even attention goes, in the limit of long times.

    .. math:: |p_k| \sim |A|\,(t+k)^{\mathrm{Re}\,\mu - 1}, \qquad \mu = \frac{b\lambda}{1 - a\lambda}

    Over the open unit disc it lies in (-3/2, infinity) for mix (1, 1) and in (-4/3, 0) for (1/2, 1/2): the printed mix
    lets gradients grow for real eigenvalues above 1/2, the half mix never does. The limit sets in for times much longer
    than :math:`1/|1-a\lambda|^2`; near 1 look at ``uniform_attention_curve``.

    Args:
        eigenvalue: lambda, any shape.
        mix: a and b.

    Raises:
        OutsideTheory: a lambda is not inside the unit circle, where there is no power law.

    Example:
        >>> uniform_attention_exponent(-0.5)
        tensor(-1.3333, dtype=torch.float64)
    """
    a, b = checked_pair(mix)
    values = _inside(as_eigenvalues(eigenvalue), a)
    found = b * values / (1 - a * values)
    return (found.real if found.is_complex() else found) - 1


@formula("kerg2022", "Proposition B.1.33", erratum="kerg2022-uniform-rate")
def uniform_attention_constant(
    eigenvalue: Numbers, t: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Tensor:
    r"""The factor A of the gradient under even attention in the limit of long times.

    .. math:: A = (1-x)^{\mu-1}\Bigl[(b+ta)\frac{\Gamma(t)}{\Gamma(t+\mu)}\,{}_2F_1(\mu,t;t+\mu;x)
        - ta\,\frac{\Gamma(t+1)}{\Gamma(t+1+\mu)}\,{}_2F_1(\mu,t+1;t+1+\mu;x)\Bigr], \qquad x = a\lambda

    Args:
        eigenvalue: lambda, any shape.
        t: when the state was made, from 1.
        mix: a and b.

    Raises:
        OutsideTheory: a lambda is not inside the unit circle, or so near it that the constant is no number any more, or
            t + mu is zero or a negative integer.

    Cost: a power series with about 40 / (-log|a lambda|) terms.
    """
    t, _, (a, b) = _checked(t, 0, mix)
    values = _inside(as_eigenvalues(eigenvalue), a)
    found = [_constant(complex(value), t, a, b) for value in values.flatten().tolist()]
    constants = torch.tensor(found, dtype=torch.complex128).reshape(values.shape).to(values.device)
    return constants if values.is_complex() else constants.real


def _constant(value: complex, t: int, a: float, b: float) -> complex:
    x = a * value
    mu = b * value / (1 - x)
    if mu.imag == 0 and mu.real == round(mu.real) and t + mu.real <= 0:
        raise OutsideTheory(f"eigenvalue {value} makes t + mu = {t + mu.real}, where the constant has a pole.")
    first = cmath.exp(complex(scipy.special.loggamma(t) - scipy.special.loggamma(t + mu)))
    second = first * t / (t + mu)
    bracket = (b + t * a) * first * _series(mu, t, x) - t * a * second * _series(mu, t + 1, x)
    found = cmath.exp((mu - 1) * cmath.log(1 - x)) * bracket
    if (bracket != 0 and abs(found) < SMALLEST) or first == 0:
        raise OutsideTheory(
            f"eigenvalue {value} is so near the unit circle that its constant is below {SMALLEST:g}; there the power "
            "law holds after very many steps only. The exact uniform_attention_gradient has no such limit."
        )
    return found


def _series(mu: complex, t: int, x: complex) -> complex:
    """2F1(mu, t; t + mu; x)."""
    term: complex = 1.0
    total = term
    for n in range(MOST_TERMS):
        term *= (mu + n) * (t + n) / ((t + mu + n) * (n + 1)) * x
        total += term
        if abs(term) <= 1e-17 * abs(total) * (1 - abs(x)):
            return total
    raise OutsideTheory(f"eigenvalue must be farther from the unit circle for its constant; a lambda is {x}.")


@formula("kerg2022", "Theorem B.1.34", erratum="kerg2022-uniform-rate")
def uniform_attention_asymptote(
    eigenvalue: Numbers, t: int, k: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Tensor:
    r"""``uniform_attention_gradient`` to leading order for long times, :math:`A\,(t+k)^{\mu-1}`.

    Args:
        eigenvalue: lambda, any shape.
        t: when the state was made, from 1.
        k: how many steps later.
        mix: a and b.

    Raises:
        OutsideTheory: a lambda is not inside the unit circle; the exact gradient has no such limit there.
    """
    t, k, (a, b) = _checked(t, k, mix)
    values = _inside(as_eigenvalues(eigenvalue), a)
    constant = uniform_attention_constant(values, t, mix)
    return constant * torch.exp((b * values / (1 - a * values) - 1) * math.log(t + k))


@formula("kerg2022", "Theorem B.1.34 and Remark B.1.35")
def uniform_attention_norm(
    eigenvalue: Float[Tensor, "*batch h"] | Complex[Tensor, "*batch h"],
    t: int,
    k: int,
    mix: tuple[float | int, float | int] = (1.0, 1.0),
) -> Float[Tensor, "*batch"]:
    r"""Frobenius norm of :math:`ds_{t+k}/dh_t` for a normal V; for any other V with these eigenvalues no more than it.

    .. math:: \Bigl\|\frac{ds_{t+k}}{dh_t}\Bigr\| \ge \sqrt{\sum_i|p_k(\lambda_i)|^2}

    Args:
        eigenvalue: all of V.
        t: when the state was made, from 1.
        k: how many steps later.
        mix: a and b.
    """
    return torch.linalg.vector_norm(uniform_attention_gradient(eigenvalue, t, k, mix), dim=-1)


@formula("separatrix", "the recursion of kerg2022 Eq. (B.1.117) for the matrix itself")
def uniform_attention_jacobian(
    recurrent: Float[Tensor, "h h"], t: int, k: int, mix: tuple[float | int, float | int] = (1.0, 1.0)
) -> Float[Tensor, "h h"]:
    r"""The whole matrix :math:`ds_{t+k}/dh_t` under even attention, for any V, normal or not.

    .. math:: P_k = \frac{b}{t+k}I + aVP_{k-1} + \frac{b}{t+k}V\sum_{j<k}P_j

    Args:
        recurrent: V.
        t: when the state was made, from 1.
        k: how many steps later.
        mix: a and b.

    Cost: k products of matrices.
    """
    t, k, (a, b) = _checked(t, k, mix)
    matrix = as_float64(recurrent, "recurrent")
    require_square(matrix, "recurrent")
    identity = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    latest = (b / t + a) * identity
    total = latest
    for time in range(t + 1, t + k + 1):
        latest = b / time * identity + matrix @ (a * latest + b / time * total)
        total = total + latest
    return latest


def checked_pair(mix: Any) -> tuple[float, float]:
    """a and b, two finite numbers."""
    if not isinstance(mix, tuple | list) or len(mix) != 2:
        raise InvalidInput(f"mix must be two numbers, a and b; got {in_words(mix)}.")
    return require_number(mix[0], "mix"), require_number(mix[1], "mix")


def _checked(t: int, k: int, mix: Any) -> tuple[int, int, tuple[float, float]]:
    return require_integer(t, "t", at_least=1), require_integer(k, "k", at_least=0), checked_pair(mix)


def as_eigenvalues(eigenvalue: Any) -> Tensor:
    """Finite numbers in double precision, real or complex as they were."""
    values = as_tensor(eigenvalue, "eigenvalue", allow_complex=True)
    return values.to(torch.complex128 if values.is_complex() else torch.float64)


def _inside(values: Tensor, a: float) -> Tensor:
    largest = float((a * values).abs().max()) if values.numel() else 0.0
    if largest >= 1:
        raise OutsideTheory(
            f"eigenvalue times {a:g} must lie inside the unit circle for a power law; the largest modulus is "
            f"{largest:g}. The exact uniform_attention_gradient has no such limit."
        )
    return values
