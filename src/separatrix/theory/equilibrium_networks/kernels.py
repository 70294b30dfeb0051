"""Kernels of the readout f = v.z*, v ~ N(0, 1 / N), of an equilibrium network z = phi(W z) + x.

The NNGP kernel is K(x, x') = E[z.z'] / N. The tangent kernel with respect to W is
Theta(x, x') = E tr[(1 - D W)^{-1} D D' (1 - D' W)^{-T}] z.z'; we give Theta / N, which has a limit.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, Result, formula
from separatrix.core.arithmetic.linear_systems import solve
from separatrix.core.networks.activations import Activation, Pointwise
from separatrix.matrices.ensembles import find_ensemble

from .cavity import CavityProblem
from .families import gaussian_correlation, is_bi_invariant
from .field_averages import field_nodes
from .linear import Family
from .nonlinear import mean_field

_DEGREES = 400
"""Hermite coefficients that are kept; the error is below the remainder of their sum times correlation^400."""


@formula("agarwala2022", "Eq. (93)", erratum="agarwala2022-eq93")
def readout_gradient(
    recurrent: Float[Tensor, "*batch n n"],
    slopes: Float[Tensor, "*batch n"],
    z_star: Float[Tensor, "*batch n"],
    readout: Float[Tensor, "*batch n"],
) -> Float[Tensor, "*batch n n"]:
    """df/dW of f = v.z* at the equilibrium: [D (1 - W^T D)^{-1} v] z*^T, with slopes D = phi'(W z*).

    Cost: one linear solve of size n.
    """
    system = torch.eye(recurrent.shape[-1], dtype=recurrent.dtype) - recurrent.mT * slopes[..., None, :]
    adjoint = slopes * solve(system, readout)
    return adjoint[..., :, None] * z_star[..., None, :]


@formula("agarwala2022", "Eq. (95)", erratum="agarwala2022-eq95")
def finite_width_tangent_kernel(
    recurrent: Float[Tensor, "*batch n n"],
    slopes: Float[Tensor, "*batch n"],
    slopes_other: Float[Tensor, "*batch n"],
    z_star: Float[Tensor, "*batch n"],
    z_star_other: Float[Tensor, "*batch n"],
) -> Float[Tensor, "*batch"]:
    """The tangent kernel of two inputs for one matrix, averaged over readouts; divide by the width for the limit."""
    eye = torch.eye(recurrent.shape[-1], dtype=recurrent.dtype)
    left = solve(eye - slopes[..., None] * recurrent, torch.diag_embed(slopes))
    right = solve(eye - slopes_other[..., None] * recurrent, torch.diag_embed(slopes_other))
    trace = (left * right).sum((-2, -1)) / recurrent.shape[-1]
    return trace * (z_star * z_star_other).sum(-1)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Kernels(Result):
    """Kernels of two inputs of equal variance and given correlation, infinite width."""

    nngp: float
    """E[z.z'] / N."""
    ntk: float
    """Theta / N, with respect to W."""
    nngp_diagonal: float
    """E[z.z] / N."""
    ntk_diagonal: float
    """Theta(x, x) / N."""


@formula("separatrix", "kernels of the nonlinear equilibrium network")
def kernels(
    ensemble: Family,
    phi: str | Activation | Pointwise = "hardtanh",
    *,
    weight_var: float | int,
    input_var: float | int = 1.0,
    correlation: float | int = 1.0,
) -> Kernels:
    r"""NNGP and tangent kernel of two centred Gaussian inputs with a given correlation.

    Both networks share W, so their fields y, y' are correlated Gaussians with covariance V q' + a^2 cov(x, x'). With
    the response r = phi' / (1 - a phi') of a unit,

    .. math:: K = E[zz'],\qquad \Theta/N = K\,\frac{C}{1-VC},\qquad C = E[r r']

    Expectations of products of one function at y and y' are sums of squared Hermite coefficients times powers of the
    correlation. In the linear case Theta / N = m1^2 x.x' / N.

    Args:
        ensemble: a bi-invariant family or one with Gaussian entries, or its name.
        phi: as in ``mean_field``.
        weight_var: V below the critical scale.
        input_var: variance of an input coordinate.
        correlation: of the two inputs, in [-1, 1].

    Raises:
        OutsideTheory: no stable equilibrium is predicted, or the family is not covered.
    """
    if not -1 <= correlation <= 1:
        raise InvalidInput(f"correlation must lie in [-1, 1]; got {correlation}.")
    ensemble = find_ensemble(ensemble)
    if not is_bi_invariant(ensemble) and gaussian_correlation(ensemble) is None:
        raise OutsideTheory(f"kernels are known for bi-invariant and Gaussian families; got {ensemble.name!r}.")
    single = mean_field(ensemble, phi, weight_var=weight_var, input_var=input_var)
    if not single.valid:
        raise OutsideTheory(
            f"weight_var must be below the critical scale, {single.critical_weight_var:.6g}; got {weight_var}."
        )
    return _pair_kernels(single.problem, float(single.q), float(single.chi), float(correlation))


def _pair_kernels(problem: CavityProblem, q: float, chi: float, correlation: float) -> Kernels:
    averages, a, mean, variance = problem.averages(*(torch.tensor(v, dtype=torch.float64) for v in (q, chi)))
    v, a_value, s2 = float(problem.weight_var), float(a), float(variance)
    cross = correlation * float(problem.input_var)
    h, lengths = field_nodes(problem.activation, a, mean, variance)
    values, gain, weights, t = _unit_values(problem, h, lengths, a, variance)
    hermite = _hermite(t)
    phi_parts = _coefficients(values, weights, hermite)
    gain_parts = _coefficients(gain, weights, hermite)

    def overlap(q_pair: float) -> tuple[float, float]:
        rho = min(max((v * q_pair + a_value**2 * cross) / s2, -1.0), 1.0)
        product = _mehler(phi_parts, float(averages.phi_square), rho)
        return product + 2 * a_value * cross * chi + cross, rho

    q_pair = cross
    for _ in range(500):
        new, rho = overlap(q_pair)
        if abs(new - q_pair) < 1e-13 * (1 + q):
            break
        q_pair = new
    ladder = _mehler(gain_parts, float(averages.response_square), rho)
    own = float(averages.response_square)
    return Kernels(q_pair, q_pair * ladder / (1 - v * ladder), q, q * own / (1 - v * own))


def _unit_values(
    problem: CavityProblem, h: Tensor, lengths: Tensor, a: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """phi, response, probability and standardised field at the nodes."""
    phi, d = problem.activation.phi(h), problem.activation.dphi(h)
    t = (h - a * phi) / variance.sqrt()
    weights = torch.exp(-t * t / 2) / (2 * torch.pi * variance).sqrt() * (1 - a * d) * lengths
    return phi, d / (1 - a * d), weights, t


def _hermite(t: Tensor) -> Tensor:
    """Orthonormal Hermite polynomials at t, degrees on the first axis."""
    rows = [torch.ones_like(t), t]
    for k in range(1, _DEGREES - 1):
        rows.append((t * rows[-1] - k**0.5 * rows[-2]) / (k + 1) ** 0.5)
    return torch.stack(rows)


def _coefficients(values: Tensor, weights: Tensor, hermite: Tensor) -> Tensor:
    return (hermite * (weights * values)).sum(-1).square()


def _mehler(squares: Tensor, total: float, rho: float) -> float:
    """Sum of squared coefficients times rho^k; what lies beyond the last degree is counted at that degree."""
    kept = float((squares * rho ** torch.arange(len(squares), dtype=torch.float64)).sum())
    return kept + max(total - float(squares.sum()), 0.0) * max(rho, 0.0) ** len(squares)
