"""The closed forms behind ``linear_deq``, one function each, for tensors of V below the critical scale.

chi = tr (1 - W)^{-1}, m1 = tr (1 - W)^{-T}(1 - W)^{-1}, m2 = tr ((1 - W)^{-T}(1 - W)^{-1})^2; normalised traces,
width to infinity. The monomials replace the document's sums, which cancel.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import formula


@formula("agarwala2022", "Eqs. (8), (60)")
def bi_invariant_second_moment(weight_var: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """m1 = 1 / (1 - V) for every bi-invariant family (independent Gaussian entries, orthogonal, ...)."""
    return 1 / (1 - weight_var)


@formula("agarwala2022", "Eqs. (18), (19), (79), (191)", erratum="agarwala2022-eq18")
def bi_invariant_fourth_moment(weight_var: Float[Tensor, "*batch"], excess: float) -> Float[Tensor, "*batch"]:
    r"""m2 of a bi-invariant family with k = tr (W^T W)^2 / V^2 - 1.

    .. math:: \frac{1+V}{(1-V)^3} + \frac{kV^2}{(1-V)^4}

    k = 0 gives the orthogonal family, k = 1 gives (1 - V)^{-4}, independent Gaussian entries.
    """
    gap = 1 - weight_var
    return (1 + weight_var) / gap**3 + excess * weight_var**2 / gap**4


@formula("agarwala2022", "Eq. (66)", erratum="agarwala2022-eq66")
def goe_second_moment(weight_var: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """m1 = 2 / (s (1 + s)) with s = sqrt(1 - 4 V), symmetric Gaussian family, V < 1/4."""
    root = (1 - 4 * weight_var).sqrt()
    return 2 / (root * (1 + root))


@formula("agarwala2022", "Eqs. (20), (148)", erratum="agarwala2022-eq20")
def goe_fourth_moment(weight_var: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """m2 = (1 - 4 V)^{-5/2}, symmetric Gaussian family, V < 1/4."""
    return (1 - 4 * weight_var) ** -2.5


@formula("separatrix", "response of the elliptic family", erratum="agarwala2022-eq9")
def elliptic_response(weight_var: Float[Tensor, "*batch"], tau: float) -> Float[Tensor, "*batch"]:
    """chi = 2 / (1 + sqrt(1 - 4 tau V)) for Gaussian entries with correlation tau of W_ij and W_ji."""
    return 2 / (1 + (1 - 4 * tau * weight_var).sqrt())


@formula("separatrix", "second moment of the elliptic family")
def elliptic_second_moment(weight_var: Float[Tensor, "*batch"], tau: float) -> Float[Tensor, "*batch"]:
    """m1 = chi^2 / (1 - V chi^2), V < 1 / (1 + tau)^2."""
    square = elliptic_response(weight_var, tau).square()
    return square / (1 - weight_var * square)


@formula("separatrix", "fourth moment of the elliptic family")
def elliptic_fourth_moment(weight_var: Float[Tensor, "*batch"], tau: float) -> Float[Tensor, "*batch"]:
    r"""m2 for Gaussian entries with correlation tau of W_ij and W_ji, V < 1 / (1 + tau)^2.

    f(s) = tr (s + (1 - W)(1 - W)^T)^{-1} solves f (s u^2 + q^2) = u with u = 1 + V f and q = u / (u + tau V f),
    the 2 x 2 equation of the Hermitised 1 - W. m1 = f(0), and m2 = -f'(0) by differentiating:

    .. math:: m_2 = \frac{f u^2}{q^2 + 2 f q q' - V},\qquad q' = \frac{-\tau V}{(u+\tau V f)^2}
    """
    f = elliptic_second_moment(weight_var, tau)
    u = 1 + weight_var * f
    whole = u + tau * weight_var * f
    q, q_slope = u / whole, -tau * weight_var / whole.square()
    return f * u.square() / (q.square() + 2 * f * q * q_slope - weight_var)


@formula("separatrix", "moments of a normal family")
def normal_moment(
    weight_var: Float[Tensor, "*batch"], eigenvalues: Complex[Tensor, " k"], masses: Float[Tensor, " k"], order: int
) -> Float[Tensor, "*batch"]:
    """The mean of |1 - sqrt(V) lambda|^{-2 order} over weighted eigenvalues at unit scale, any normal family."""
    return (masses * (1 - weight_var.sqrt()[..., None] * eigenvalues).abs().pow(-2 * order)).sum(-1)


@formula("agarwala2022", "Eq. (57)", erratum="agarwala2022-eq54")
def untied_second_moment(weight_var: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """a = 1 / (1 - V) for fresh matrices at every step, any rotation-invariant family with zero mean."""
    return 1 / (1 - weight_var)


@formula("agarwala2022", "Eqs. (14), (76), (77)", erratum="agarwala2022-eq14")
def untied_fourth_moment(
    weight_var: Float[Tensor, "*batch"], tau: float, excess: float, third: float = 0.0
) -> Float[Tensor, "*batch"]:
    r"""b = tr (M M^T)^2 for M <- 1 + W M with a fresh W at every step, V < 1.

    With a = 1 / (1 - V), the unit-scale moments tau = tr W^2, k = tr (W^T W)^2 - 1 and third = tr W^2 W^T:

    .. math:: b = \frac{1 + 2\tau V + 4 V a + 4\,\mathrm{third}\,V^{3/2}a + k V^2a^2}{1-V^2}

    Only for k = 0 (orthogonal) is the divergence of order (1 - V)^{-2}; it is of order (1 - V)^{-3} otherwise.
    """
    v, a = weight_var, 1 / (1 - weight_var)
    return (1 + 2 * tau * v + 4 * v * a + 4 * third * v**1.5 * a + excess * (v * a) ** 2) / (1 - v * v)


@formula("agarwala2022", "Eq. (48)", erratum="agarwala2022-eq7")
def bi_invariant_finite_time(weight_var: Float[Tensor, "*batch"], steps: int) -> Float[Tensor, "*batch"]:
    """tr z_t.z_t per unit input power after t steps from zero: 1 + V + ... + V^{t-1}, bi-invariant, tied or untied."""
    powers = torch.arange(steps, dtype=torch.float64, device=weight_var.device)
    return (weight_var[..., None] ** powers).sum(-1)


@formula("separatrix", "finite time, symmetric Gaussian family")
def goe_finite_time(weight_var: Float[Tensor, "*batch"], steps: int) -> Float[Tensor, "*batch"]:
    """The same for one symmetric Gaussian matrix used at every step: the mean of (1 + l + ... + l^{t-1})^2.

    Over the semicircle of radius 2 sqrt(V), by the Gauss rule with ``steps`` points, which is exact for this
    polynomial; it holds for any V, also above the critical scale, where it grows without bound.
    """
    angle = torch.arange(1, steps + 1, dtype=torch.float64, device=weight_var.device) * (math.pi / (steps + 1))
    weights = (2 / (steps + 1)) * angle.sin().square()
    points = 2 * weight_var.sqrt()[..., None] * angle.cos()
    powers = points[..., None] ** torch.arange(steps, dtype=torch.float64, device=weight_var.device)
    return (weights * powers.sum(-1).square()).sum(-1)


@formula("agarwala2022", "Eq. (38)", erratum="agarwala2022-eq38")
def iid_power_norm(weight_var: Float[Tensor, "*batch"], power: int) -> Float[Tensor, "*batch"]:
    """Largest squared singular value of W^L for independent entries: (L + 1)^{L+1} / L^L V^L."""
    return weight_var**power * ((power + 1) * (1 + 1 / power) ** power)
