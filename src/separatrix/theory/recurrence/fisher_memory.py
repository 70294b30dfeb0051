r"""Closed forms and bounds of the Fisher memory of linear recurrent networks.

Conventions: :math:`h_t = W h_{t-1} + v s_t + z_t` with noise variance ``noise_var`` (epsilon) per unit and step and a
source v of length 1. For lines the source is the first unit, and ``alpha`` is the *square* of the sub-diagonal entry;
the document switches between alpha and its square root (erratum kerg2022-normalisation). All forms are exact at finite
size unless the summary says "to leading order". ``separatrix.matrices.fisher_memory_curve`` computes the same
quantities for any matrix.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, formula, require_integer, require_positive, require_square


@formula("kerg2022", "section 3.4.2", erratum="kerg2022-normalisation")
def delay_line_memory(
    alpha: Float[Tensor, "*#batch"], lag: Int[Tensor, "*#batch"], n_units: int, noise_var: float = 1.0
) -> Float[Tensor, "*batch"]:
    r"""Memory curve of a delay line with sub-diagonal entry :math:`\sqrt\alpha`.

    .. math:: J(k) = \frac{1}{\epsilon}\,\frac{\alpha^k(\alpha-1)}{\alpha^{k+1}-1}
        = \frac{1}{\epsilon\sum_{m=0}^{k}\alpha^{-m}} \quad (k < N), \qquad J(k) = 0 \quad (k \ge N)

    At alpha = 1 this is :math:`1/(\epsilon(k+1))`; the sum is evaluated so that no power overflows.

    Args:
        alpha: squared weight, positive.
        lag: steps back, at least 0.
        n_units: length of the line.
        noise_var: epsilon.

    Raises:
        OutsideTheory: alpha is not positive.
    """
    _require_line(alpha, n_units, noise_var)
    if bool((lag < 0).any()):
        raise InvalidInput(f"lag must be at least 0; got {int(lag.min())}.")
    within = lag < n_units
    noise = _geometric_sum(alpha, torch.where(within, lag, torch.zeros_like(lag)))
    return torch.where(within, 1 / (noise_var * noise), 0.0)


@formula("kerg2022", "section 2.6", erratum="kerg2022-delay-line-total")
def delay_line_total(alpha: Float[Tensor, "*batch"], n_units: int, noise_var: float = 1.0) -> Float[Tensor, "*batch"]:
    """Total memory of a delay line with squared weight alpha: the finite sum of its curve.

    Cost: ``n_units`` terms per element.
    """
    lags = torch.arange(require_integer(n_units, "n_units", at_least=1), device=alpha.device)
    return delay_line_memory(alpha[..., None], lags, n_units, noise_var).sum(-1)


@formula("kerg2022", "section 2.6", erratum="kerg2022-delay-line-total")
def delay_line_total_leading(
    alpha: Float[Tensor, "*batch"], n_units: int, noise_var: float = 1.0
) -> Float[Tensor, "*batch"]:
    r"""Total memory of a long amplifying delay line, to leading order in its length.

    .. math:: J_{tot} = \frac{N}{\epsilon}\Bigl(1 - \frac{1}{\alpha}\Bigr) + O(1), \qquad \alpha > 1

    Raises:
        OutsideTheory: alpha is not above 1.
    """
    _require_line(alpha, n_units, noise_var)
    if not bool((alpha > 1).all()):
        raise OutsideTheory(f"alpha must exceed 1 for the total to grow with the length; got {float(alpha.min())}.")
    return n_units / noise_var * (1 - 1 / alpha)


@formula("kerg2022", "section 2.6")
def normal_memory(
    eigenvalue_modulus: Float[Tensor, "*#batch h"],
    source_weight: Float[Tensor, "*#batch h"],
    lag: Int[Tensor, "*#batch"],
    noise_var: float = 1.0,
) -> Float[Tensor, "*batch"]:
    r"""Memory curve of a normal matrix.

    .. math:: J(k) = \frac{1}{\epsilon}\sum_i w_i\,(1-|\lambda_i|^2)\,|\lambda_i|^{2k}, \qquad w_i = |u_i^* v|^2

    Summed over all k this is :math:`1/\epsilon` whatever the eigenvalues: a normal network only moves memory between
    lags. A multiple r of an orthogonal matrix gives :math:`(1-r^2)r^{2k}/\epsilon`.

    Args:
        eigenvalue_modulus: moduli of the eigenvalues, below 1.
        source_weight: squared components of the source along the eigenvectors, which sum to 1.
        lag: steps back.
        noise_var: epsilon.

    Raises:
        OutsideTheory: a modulus is 1 or more.
    """
    require_positive(noise_var, "noise_var")
    if not bool(((eigenvalue_modulus >= 0) & (eigenvalue_modulus < 1)).all()):
        worst = float(eigenvalue_modulus.abs().max())
        raise OutsideTheory(f"eigenvalue_modulus must lie in [0, 1) for a stationary state; got {worst}.")
    square = eigenvalue_modulus**2
    return (source_weight * (1 - square) * square ** lag[..., None]).sum(-1) / noise_var


@formula("kerg2022", "section 2.6")
def normal_memory_matrix(
    eigenvalue: Complex[Tensor, "*#batch h"],
    source_weight: Float[Tensor, "*#batch h"],
    n_steps: int,
    noise_var: float = 1.0,
) -> Complex[Tensor, "*batch k k"]:
    r"""The whole Fisher memory matrix of a normal matrix; for a real one with a real source it is real.

    .. math:: J_{kl} = \frac{1}{\epsilon}\sum_i w_i\,(1-|\lambda_i|^2)\,\bar\lambda_i^k\lambda_i^l

    Args:
        eigenvalue: of modulus below 1.
        source_weight: squared components of the source along the eigenvectors, which sum to 1.
        n_steps: number of lags.
        noise_var: epsilon.

    Raises:
        OutsideTheory: a modulus is 1 or more.
    """
    require_positive(noise_var, "noise_var")
    lags = torch.arange(require_integer(n_steps, "n_steps", at_least=1), device=eigenvalue.device)
    if not bool((eigenvalue.abs() < 1).all()):
        raise OutsideTheory(
            f"eigenvalue must have a modulus below 1 for a stationary state; got {float(eigenvalue.abs().max())}."
        )
    powers = eigenvalue[..., None] ** lags
    weight = source_weight * (1 - eigenvalue.abs() ** 2) / noise_var
    return torch.einsum("...h,...hk,...hl->...kl", weight.to(powers.dtype), powers.conj(), powers)


@formula("kerg2022", "section 2.6")
def normal_memory_total(noise_var: float = 1.0) -> float:
    r"""Total memory of any stable normal matrix and any source, :math:`1/\epsilon`."""
    require_positive(noise_var, "noise_var")
    return 1 / noise_var


@formula("kerg2022", "section 2.6")
def memory_ceiling(n_units: int, noise_var: float = 1.0) -> float:
    r"""What no stable matrix and source exceed in total: :math:`N/\epsilon`, the trace of every spatial matrix."""
    require_positive(noise_var, "noise_var")
    return require_integer(n_units, "n_units", at_least=1) / noise_var


@formula("kerg2022", "section 2.6")
def amplification_bound(amplification: Float[Tensor, "*batch k"], noise_var: float = 1.0) -> Float[Tensor, "*batch k"]:
    r"""The most memory that a given amplification of the signal can carry.

    .. math:: J(k) \le \frac{1}{\epsilon\sum_{m=0}^{k}1/A_m}, \qquad A_m = \|W^m v\|^2

    Equality holds for the delay line with these amplifications, and for what an orthogonal change of basis makes of
    it together with its source.

    Args:
        amplification: A_0 .. A_k; zero once the signal has left the network, and the bound is zero from there on.
        noise_var: epsilon.
    """
    require_positive(noise_var, "noise_var")
    if not bool((amplification >= 0).all()):
        raise InvalidInput(f"amplification must not be negative; got {float(amplification.min())}.")
    return 1 / (noise_var * torch.cumsum(1 / amplification, dim=-1))


@formula("kerg2022", "Proposition 3.4.1, Eq. (3.4.4)", erratum="kerg2022-eq-a-2-6")
def triangular_memory_bound(
    feedforward: Float[Tensor, "*batch h h"], noise_var: float = 1.0
) -> Float[Tensor, "*batch h"]:
    r"""Least memory of a strictly lower-triangular matrix whose source is the first unit.

    .. math:: J(k) \ge \frac{\alpha^k}{\epsilon\,\sigma_{\max}^{2(N-1)}}\,\frac{\alpha-1}{\alpha^{k+1}-1},
        \qquad \Theta = D A

    D is the delay line with :math:`\sqrt\alpha`, A is unit lower triangular with largest singular value sigma_max.

    Args:
        feedforward: matrices with one positive number sqrt(alpha) along the sub-diagonal.
        noise_var: epsilon.

    Returns:
        The bound for k = 0 .. N - 1.

    Raises:
        OutsideTheory: the matrix is not of that form.
    """
    alpha, spread = _line_factors(feedforward, noise_var)
    size = feedforward.shape[-1]
    lags = torch.arange(size, device=feedforward.device)
    curve = 1 / (noise_var * _geometric_sum(alpha[..., None], lags))
    return curve / spread[..., None] ** (2 * (size - 1))


@formula("separatrix", "sharper form of kerg2022 Proposition 3.4.1")
def sharp_triangular_memory_bound(
    feedforward: Float[Tensor, "*batch h h"], noise_var: float = 1.0
) -> Float[Tensor, "*batch h"]:
    r"""Least memory of a strictly lower-triangular matrix, with a cost that grows with the lag instead of the size.

    .. math:: J(k) \ge \frac{\alpha^k}{\epsilon\sum_{m=0}^{k}(\alpha\sigma_{\max}^2)^m}

    It follows from :math:`A\Pi A^\top \preceq \sigma_{\max}^2\Pi` on the projectors onto the last coordinates, and is
    never below ``triangular_memory_bound``, which pays sigma_max to the power 2(N-1) at every lag.

    Args:
        feedforward: matrices with one positive number sqrt(alpha) along the sub-diagonal.
        noise_var: epsilon.

    Returns:
        The bound for k = 0 .. N - 1.
    """
    alpha, spread = _line_factors(feedforward, noise_var)
    lags = torch.arange(feedforward.shape[-1], device=feedforward.device)
    # alpha^k / sum_m (alpha s)^m with s = sigma^2, divided through by (alpha s)^k so that nothing overflows
    growth = spread[..., None] ** 2
    return growth ** (-lags) / (noise_var * _geometric_sum(alpha[..., None] * growth, lags))


@formula("kerg2022", "section 2.6")
def feedback_line_radius(
    sub: Float[Tensor, "*batch"], sup: Float[Tensor, "*batch"], n_units: int
) -> Float[Tensor, "*batch"]:
    r"""Spectral radius of a line with forward weight ``sub`` and feedback weight ``sup``.

    .. math:: \rho = 2\sqrt{|\mathrm{sub}\cdot\mathrm{sup}|}\,\cos\frac{\pi}{N+1}
    """
    size = require_integer(n_units, "n_units", at_least=1)
    return 2 * (sub * sup).abs().sqrt() * math.cos(math.pi / (size + 1))


def _geometric_sum(alpha: Tensor, lag: Tensor) -> Tensor:
    """sum of alpha^-m for m = 0 .. lag, without overflow for alpha > 1 and without cancellation at alpha = 1."""
    log = torch.log(alpha)
    is_one = log == 0
    safe = torch.where(is_one, 1.0, log)
    return torch.where(is_one, (lag + 1).to(alpha.dtype), torch.expm1(-(lag + 1) * safe) / torch.expm1(-safe))


def _require_line(alpha: Tensor, n_units: int, noise_var: float) -> None:
    require_integer(n_units, "n_units", at_least=1)
    require_positive(noise_var, "noise_var")
    if not bool((alpha > 0).all()):
        raise OutsideTheory(f"alpha must be positive, the square of the line's weight; got {float(alpha.min())}.")


def _line_factors(feedforward: Tensor, noise_var: float) -> tuple[Tensor, Tensor]:
    """alpha and the largest singular value of A in Theta = D A."""
    require_square(feedforward, "feedforward")
    require_positive(noise_var, "noise_var")
    if feedforward.shape[-1] < 2:
        raise OutsideTheory("feedforward needs at least two units to have a sub-diagonal; got one.")
    sub = torch.diagonal(feedforward, -1, -2, -1)
    weight = sub[..., :1]
    straight = ((sub - weight).abs() <= 1e-12 * weight.abs()).all()
    if not bool(straight & (weight > 0).all()):
        raise OutsideTheory("feedforward must have one positive number along its sub-diagonal; got several values.")
    if bool((feedforward.triu() != 0).any()):
        raise OutsideTheory("feedforward must be zero on and above the diagonal; split off the diagonal part first.")
    last = torch.zeros_like(feedforward[..., :1, :])
    last[..., -1] = 1
    factor = torch.cat([feedforward[..., 1:, :] / weight[..., None], last], dim=-2)
    return weight[..., 0] ** 2, torch.linalg.matrix_norm(factor, 2)
