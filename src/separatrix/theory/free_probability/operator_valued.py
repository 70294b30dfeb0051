"""Operator-valued semicircular equations, and the spectrum of a linear equilibrium network that follows from them.

A rational function of Gaussian matrices is the corner of the inverse of a block matrix linear in them (a pencil). The
blockwise normalised trace G of that inverse solves (Z - eta(G)) G = 1, with Z the constant part and eta the covariance
of the blocks.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import (
    OutsideTheory,
    ShapeError,
    as_float64,
    as_tensor,
    formula,
    require_number,
    require_positive,
    require_square,
)
from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.arithmetic.linear_systems import inv, solve

_HEIGHTS = tuple(10.0 ** (-0.5 * k) for k in range(-2, 17))


@formula("agarwala2022", "Eqs. (130)-(132)")
def semicircular_resolvent(
    constant: Complex[Tensor, "*batch k k"], covariance: Float[Tensor, "k k k k"] | Complex[Tensor, "k k k k"]
) -> Complex[Tensor, "*batch k k"]:
    r"""Blockwise normalised trace of (Z - F)^{-1}, F a k x k block matrix of Gaussian matrices, width to infinity.

    .. math:: (Z - \eta(G))\,G = 1,\qquad \eta(G)_{ij} = \sum_{kl}\sigma(i,k;l,j)\,G_{kl}

    Args:
        constant: Z, one matrix per point.
        covariance: sigma[i, k, l, j] = tr F_ik F_lj.

    Returns:
        G on the branch reached from Z + i t, t large, where it is unique; NaN where Newton's method failed.

    Cost: about 100 solves of k^2 equations per point.
    """
    constant = as_tensor(constant, "constant", dtype=torch.complex128)
    covariance = as_tensor(covariance, "covariance", allow_complex=True)
    require_square(constant, "constant")
    k = constant.shape[-1]
    if covariance.shape != (k,) * 4:
        raise ShapeError(f"covariance must have shape {(k,) * 4} for blocks of {k}; got {tuple(covariance.shape)}.")
    sigma = covariance.to(torch.complex128)
    eye = torch.eye(k, dtype=torch.complex128)
    resolvent = inv(constant + 1j * _HEIGHTS[0] * eye)
    for height in (*_HEIGHTS, 0.0):
        resolvent, residual = _solve(constant + 1j * height * eye, sigma, resolvent)
    good = residual <= 1e-9 * (1 + resolvent.abs().amax((-2, -1)))
    return torch.where(good[..., None, None], resolvent, torch.full_like(resolvent, torch.nan))


def _solve(constant: Tensor, sigma: Tensor, resolvent: Tensor) -> tuple[Tensor, Tensor]:
    """Newton's method for G - (Z - eta(G))^{-1} = 0."""
    k = constant.shape[-1]
    eye = torch.eye(k * k, dtype=torch.complex128)
    residual = torch.full(constant.shape[:-2], torch.inf, dtype=torch.float64)
    for _ in range(30):
        image = inv(constant - torch.einsum("iklj,...kl->...ij", sigma, resolvent))
        gap = image - resolvent
        residual = gap.abs().amax((-2, -1))
        if bool((residual <= 1e-13 * (1 + image.abs().amax((-2, -1)))).all()):
            break
        # derivative of the image: X -> S eta(X) S
        slope = torch.einsum("...ai,iklj,...jb->...abkl", image, sigma, image)
        system = eye - slope.reshape(*constant.shape[:-2], k * k, k * k)
        resolvent = resolvent + solve(system, gap.reshape(*constant.shape[:-2], k * k)).unflatten(-1, (k, k))
    return resolvent, residual


@formula("agarwala2022", "Eq. (188)")
def iid_resolvent_moment_function(z: Complex[Tensor, "*batch"], weight_var: float) -> Complex[Tensor, "*batch"]:
    r"""M(z) = z G(z) - 1 of (1 - W)^{-T} (1 - W)^{-1}, W with independent entries of variance V / N, N to infinity.

    The root of :math:`V^2z^2M^3 + 2VzM^2 + ((V-1)z+1)M + 1 = 0` that behaves as 1 / ((1 - V) z) at infinity, followed
    down from the height 1e4; the root of least modulus is right only at large z.

    Raises:
        OutsideTheory: weight_var outside (0, 1).
    """
    z = as_tensor(z, "z", dtype=torch.complex128)  # the eigenvalue routine beneath ends the process at NaN
    if not 0 < require_number(weight_var, "weight_var") < 1:
        raise OutsideTheory(f"weight_var must lie in (0, 1), where the fixed point exists; got {weight_var}.")
    v, target = weight_var, z.imag.abs().clamp_min(1e-12)
    start = torch.complex(z.real, 1e4 * (1 + z.abs()))
    value = 1 / ((1 - v) * start)
    for fraction in torch.linspace(0, 1, 121, dtype=torch.float64):
        point = torch.complex(z.real, start.imag ** (1 - fraction) * target**fraction)
        roots = _cubic_roots(v * v * point**2, 2 * v * point, (v - 1) * point + 1, torch.ones_like(point))
        nearest = (roots - value[..., None]).abs().argmin(-1, keepdim=True)
        value = roots.gather(-1, nearest)[..., 0]
    return torch.where(z.imag < 0, value.conj(), value)


@formula("agarwala2022", "Eqs. (97), (98), (188)")
def iid_resolvent_density(x: Float[Tensor, "*batch"], weight_var: float, eta: float = 1e-9) -> Float[Tensor, "*batch"]:
    """Density of the spectrum of (1 - W)^{-T} (1 - W)^{-1} for independent entries, at positive points."""
    x, eta = as_float64(x, "x"), require_positive(eta, "eta")
    z = torch.complex(x, torch.full_like(x, eta))
    return ((1 + iid_resolvent_moment_function(z, weight_var)) / z).imag / -torch.pi


def _cubic_roots(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    companion = torch.zeros(*a.shape, 3, 3, dtype=torch.complex128)
    companion[..., 0, :] = torch.stack([-b / a, -c / a, -d / a], -1)
    companion[..., 1, 0] = companion[..., 2, 1] = 1
    if not bool(torch.isfinite(companion).all()):  # at which the eigenvalue routine beneath ends the process
        raise OutsideTheory("z and weight_var must be of a size whose squares are floating numbers.")
    return eigvals(companion)
