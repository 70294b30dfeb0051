"""Spectra of non-normal products: where the eigenvalues of a wide non-symmetric matrix lie in the complex plane.

The eigenvalues of T are read from the Hermitian matrix [[0, T - lambda], [(T - lambda)^*, 0]]: lambda lies in the
spectrum where the density of that matrix at zero does not vanish.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import InvalidInput, as_float64, formula

from .sampled import Discrete
from .search import root_of_decreasing


@formula("agarwala2022", "Eq. (30)", erratum="agarwala2022-eq30")
def annulus(
    second_moment: Float[Tensor, "*batch"], inverse_second_moment: Float[Tensor, "*batch"]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Inner and outer radius of the spectrum of an R-diagonal T (bi-invariant, or bi-invariant times a free D).

    Args:
        second_moment: tr T^T T, whose square root is the outer radius.
        inverse_second_moment: tr (T^T T)^{-1}, infinite for a singular T, whose spectrum then fills the disc.
    """
    return inverse_second_moment.rsqrt(), second_moment.sqrt()


@formula("separatrix", "boundary of D times an elliptic matrix")
def elliptic_boundary(
    slopes: Discrete, weight_var: float, tau: float, angles: Float[Tensor, " n"]
) -> Complex[Tensor, " n"]:
    r"""Points on the boundary of the spectrum of D W, W elliptic with correlation tau, D = diag of slopes.

    With u = lambda / (tau V m) the boundary V E|d / (lambda - tau V d m)|^2 = 1 becomes
    :math:`E|d/(u-d)|^2 = |\tau|\,|E[d/(u-d)]|`, which is solved on a ray for each angle; then
    lambda = u sqrt(tau V E[d/(u-d)]). Angles in [0, 2 pi) give half the curve, the other half is minus it.

    Raises:
        InvalidInput: negative slopes, or tau outside [-1, 1].
    """
    if slopes.edges()[0] < 0 or not -1 <= tau <= 1:
        raise InvalidInput(f"slopes must be at least 0 and tau must lie in [-1, 1]; got {slopes.edges()[0]}, {tau}.")
    angles = as_float64(angles, "angles")
    direction = torch.polar(torch.ones_like(angles), angles)
    if tau == 0:
        return direction * math.sqrt(weight_var * float(slopes.moments(2)[1]))
    top = slopes.edges()[1]
    values, weights = slopes.values, slopes.weights

    def sums(log_radius: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u = top / 2 + direction * (top / 2 + top * log_radius.exp())
        ratio = values / (u[..., None] - values)
        return u, (weights * ratio).sum(-1), (weights * ratio.abs().square()).sum(-1)

    def balance(log_radius: Tensor) -> Tensor:
        _, first, second = sums(log_radius)
        return second - abs(tau) * first.abs()

    log_radius = root_of_decreasing(balance, torch.full_like(angles, -32.0), torch.full_like(angles, 14.0))
    u, first, _ = sums(log_radius)
    return u * torch.sqrt(tau * weight_var * first + 0j)


@formula("separatrix", "resolvent of the Hermitised D times an elliptic matrix")
def hermitised_resolvent(
    slopes: Discrete,
    weight_var: float,
    tau: float,
    points: Complex[Tensor, "*batch"],
    eta: float = 1e-4,
    max_steps: int = 2000,
) -> Complex[Tensor, "*batch 2 2"]:
    """The averaged 2x2 resolvent of the Hermitised D^{1/2} W D^{1/2} at height eta, for W elliptic and D >= 0.

    The matrix has the eigenvalues of D W. Entry (0, 0) is -i pi times the density at zero of the Hermitised matrix,
    smoothed over eta: it tends to zero with eta outside the spectrum and stays finite inside. Entry (1, 0) is the
    Stieltjes transform of the eigenvalues in the plane.

    Solved by averaged iteration of the self-consistent equation; elements that did not settle are NaN.

    Cost: O(points x slopes) per step; tens of steps away from the boundary of the spectrum, more close to it.
    """
    if not eta > 0 or slopes.edges()[0] < 0:
        raise InvalidInput(f"eta must be positive and slopes at least 0; got {eta} and {slopes.edges()[0]}.")
    d, weights = slopes.values, slopes.weights
    points = points.to(torch.complex128)
    diagonal = torch.full_like(points, -1j)  # <d G_11> = <d G_22>
    across, back = torch.zeros_like(points), torch.zeros_like(points)  # <d G_12>, <d G_21>
    for _ in range(max_steps):
        site = _site_resolvents(d, weight_var, tau, points, (diagonal, across, back), eta)
        new = [(weights * d * part).sum(-1) for part in site]
        gaps = (new[0] - diagonal, new[1] - across, new[2] - back)
        change = torch.stack([gap.abs() for gap in gaps]).amax(0)
        if bool((change < 1e-12).all()):
            break
        diagonal, across, back = diagonal + gaps[0] / 2, across + gaps[1] / 2, back + gaps[2] / 2
    g11, g12, g21 = ((weights * part).sum(-1) for part in site)
    mean = torch.stack([g11, g12, g21, g11], -1).unflatten(-1, (2, 2))
    return torch.where((change < 1e-8)[..., None, None], mean, torch.full_like(mean, torch.nan))


def _site_resolvents(
    d: Tensor, weight_var: float, tau: float, points: Tensor, averages: tuple[Tensor, Tensor, Tensor], eta: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Entries 11, 12 and 21 of the resolvent at each value of D, given the averages over all of them."""
    diagonal, across, back = (part[..., None] for part in averages)
    a = 1j * eta - weight_var * d * diagonal
    b = points[..., None] - tau * weight_var * d * back
    c = points.conj()[..., None] - tau * weight_var * d * across
    determinant = a * a - b * c
    return a / determinant, -b / determinant, -c / determinant
