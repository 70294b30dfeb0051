"""Nonlinear deep equilibrium network z = phi(W z) + x at infinite width: statistics, stability, critical scale.

For independent or orthogonal weights this is the document's theory (its Eqs. 25 and 30). For symmetric, antisymmetric
and elliptic weights the document's formulas fail, because a unit's output returns to it through the matrix; here the
cavity equations take that echo into account. Results are for inputs with independent Gaussian coordinates.

Source: agarwala2022, section 3; the cavity equations are ours (explanation/why-symmetric-matrices-are-different).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, Result, as_float64, formula
from separatrix.core.networks.activations import Activation, Pointwise, find_activation
from separatrix.matrices.ensembles import AbstractEnsemble, find_ensemble

from ..free_probability import elliptic_radius, reflect, slopes_edge
from .cavity import CavityProblem, Injection, finite_or_nan, require_monotone, require_theory, solve_cavity
from .families import gaussian_correlation, is_bi_invariant
from .field_averages import FieldAverages
from .linear import Family, linear_critical_weight_var

Scalar: TypeAlias = float | int | Tensor


@final
@dataclasses.dataclass(frozen=True, repr=False)
class MeanField(Result):
    """What theory says of a wide equilibrium network; NaN where it says nothing (``valid`` is False)."""

    ensemble: str
    phi: str
    weight_var: float | Tensor
    input_var: float | Tensor
    input_mean: float | Tensor
    h_var: float | Tensor
    """Mean square of what the activation is applied to, E h^2: h = W z when the input enters outside, h = W z + x when
    it enters inside (h is Gaussian only when ``reaction`` is zero)."""
    q: float | Tensor
    """Mean square of the output, E z^2."""
    chi: float | Tensor
    """Response of a unit to a field on itself."""
    reaction: float | Tensor
    """a, the strength with which a unit's output returns to it."""
    slope: float | Tensor
    """E phi'(h); for the hard-tanh the fraction of units that are not saturated."""
    radius: float | Tensor
    """Spectral radius of the Jacobian; plain iteration converges below 1, at this rate."""
    replicon: float | Tensor
    """Below 1: one stable equilibrium. At 1 the rightmost eigenvalue of the Jacobian reaches 1."""
    valid: bool | Tensor
    """Whether the equations hold: solved, reaction below 1, replicon below 1."""
    outcome: Outcome | Tensor
    """How the solve of the equations ended."""
    problem: CavityProblem = dataclasses.field(repr=False)

    @property
    def critical_weight_var(self) -> float:
        """The critical scale for this family, activation and input (computed on demand, a few tenths of a second)."""
        problem = self.problem
        return critical_weight_var(
            problem.ensemble,
            phi=problem.activation,
            input_var=float(problem.input_var.reshape(-1)[0]),
            input_mean=float(problem.input_mean.reshape(-1)[0]),
            cell=problem.cell,
        )


@formula("agarwala2022", "Eqs. (25), (30)", erratum="agarwala2022-eq25-goe")
def mean_field(
    ensemble: Family,
    phi: str | Activation | Pointwise = "hardtanh",
    *,
    weight_var: Scalar,
    input_var: Scalar = 1.0,
    input_mean: Scalar = 0.0,
    cell: Injection = "outside",
) -> MeanField:
    r"""Statistics and stability of the equilibrium of a wide network.

    .. math:: h = g + a z,\quad z = \phi(h)+x,\quad g\sim N(0, \gamma q),\quad q = E z^2,\quad
              \chi = E\Bigl[\frac{\phi'(h)}{1-a\phi'(h)}\Bigr]

    with a = 0, gamma = V for bi-invariant families; a = tau V chi, gamma = V for Gaussian entries of correlation tau;
    a = R(chi), gamma = R'(chi) for symmetric families, R the R-transform of W.

    Args:
        ensemble: a square family or its name; any with a uniform basis but general normal ones.
        phi: name or function of a tensor; not decreasing unless the family is bi-invariant.
        weight_var: V = E tr W^T W, positive; a number or a tensor.
        input_var: variance of an input coordinate; a number or a tensor, broadcast with ``weight_var``.
        input_mean: mean of an input coordinate.
        cell: ``"outside"`` for z = phi(W z) + x, ``"inside"`` for z = phi(W z + x).

    Returns:
        Numbers if all arguments were numbers, tensors otherwise. Where the equations do not hold (``valid`` False)
        every statistic is NaN.

    Raises:
        OutsideTheory: a non-monotone activation with a family that needs one, or a family not covered.
        InvalidInput: negative or non-finite arguments.

    Cost: 5 to 20 ms for one network, about twice that for a batch of 25.

    Example:
        >>> from separatrix.matrices.ensembles import GOE
        >>> result = mean_field(GOE(), "hardtanh", weight_var=0.36, input_var=1.0)
        >>> round(result.h_var, 4), round(result.radius, 4), result.valid
        (1.2507, 0.9043, True)
    """
    ensemble, activation = find_ensemble(ensemble), find_activation(phi)
    require_theory(ensemble)
    require_monotone(ensemble, activation)
    problem, plain = _problem(ensemble, activation, weight_var, input_var, input_mean, cell)
    q, chi, reached = solve_cavity(problem)
    averages, a, mean, variance = problem.averages(q, chi)
    unclamped, gain = problem.reaction(chi)
    replicon = gain * averages.response_square
    valid = reached & (unclamped * activation.max_slope < 1) & (replicon < 1)
    spread = variance * averages.response + mean * averages.phi  # E[y phi], by parts
    h_var = variance + mean.square() + 2 * a * spread + a.square() * averages.phi_square
    radius = _jacobian_radius(problem, averages)
    numbers = {
        "weight_var": problem.weight_var,
        "input_var": problem.input_var,
        "input_mean": problem.input_mean,
        **{
            name: finite_or_nan(value, valid)
            for name, value in {
                "h_var": h_var,
                "q": q,
                "chi": chi,
                "reaction": a,
                "slope": averages.slope,
                "radius": radius,
                "replicon": replicon,
            }.items()
        },
    }
    codes = torch.where(reached, int(Outcome.CONVERGED), int(Outcome.OUT_OF_STEPS))
    outcome: Any = Outcome(int(codes)) if plain else codes
    kept: Any = bool(valid) if plain else valid
    shown: dict[str, Any] = {name: float(value) if plain else value for name, value in numbers.items()}
    return MeanField(ensemble=ensemble.name, phi=activation.name, valid=kept, outcome=outcome, problem=problem, **shown)


@formula("agarwala2022", "Theorem 3.2, Eq. (30) at r = 1", erratum="agarwala2022-eq25-goe")
def critical_weight_var(
    ensemble: Family,
    phi: str | Activation | Pointwise = "hardtanh",
    *,
    input_var: float | int = 1.0,
    input_mean: float | int = 0.0,
    cell: Injection = "outside",
) -> float:
    """The largest V below which theory predicts one stable equilibrium that plain iteration reaches.

    The replicon or the spectral radius reaches 1 there, whichever comes first. Infinite if neither does below about
    10^4 times the linear critical scale.

    Raises:
        OutsideTheory: as ``mean_field``.

    Example:
        >>> from separatrix.matrices.ensembles import Gaussian
        >>> round(critical_weight_var(Gaussian(), "hardtanh", input_var=1.0) ** 0.5, 4)
        1.7216
    """
    family, activation = find_ensemble(ensemble), find_activation(phi)

    def is_stable(scales: Tensor) -> Tensor:
        result = mean_field(
            family, activation, weight_var=scales, input_var=input_var, input_mean=input_mean, cell=cell
        )
        assert isinstance(result.valid, Tensor)
        assert isinstance(result.radius, Tensor)
        return result.valid & (result.radius < 1)

    # below this scale the largest slope times the largest eigenvalue is less than 1, whatever the statistics
    safe = 0.999 * linear_critical_weight_var(family) / activation.max_slope**2
    grid = safe * 1.5 ** torch.arange(25, dtype=torch.float64)
    for _ in range(8):
        stable = is_stable(grid)
        if bool(stable.all()):
            return math.inf
        first = int((~stable).nonzero()[0])
        if first == 0:
            return float(grid[0])
        low, high = grid[first - 1], grid[first]
        if float(high - low) < 1e-7 * float(high):
            break
        grid = low + (high - low) * torch.linspace(0, 1, 25, dtype=torch.float64)
    return float((low + high) / 2)


def _jacobian_radius(problem: CavityProblem, averages: FieldAverages) -> Tensor:
    """Spectral radius of D W for the slopes that the averages describe."""
    tau = gaussian_correlation(problem.ensemble)
    if is_bi_invariant(problem.ensemble):
        return (problem.weight_var * averages.slope_square).sqrt()
    if tau is not None:
        return elliptic_radius(averages.slopes, averages.weights, problem.weight_var, tau)
    sides = [problem.law] if problem.law.symmetric else [problem.law, reflect(problem.law)]
    edges = [slopes_edge(averages.slopes, averages.weights, side) for side in sides]
    return problem.weight_var.sqrt() * torch.stack(edges).amax(0)


def _problem(
    ensemble: AbstractEnsemble,
    activation: Activation,
    weight_var: Scalar,
    input_var: Scalar,
    input_mean: Scalar,
    cell: Injection,
) -> tuple[CavityProblem, bool]:
    """Checked arguments broadcast to one shape, and whether all of them were plain numbers."""
    if cell not in ("outside", "inside"):
        raise InvalidInput(f"cell must be 'outside' (phi(W z) + x) or 'inside' (phi(W z + x)); got {cell!r}.")
    given = {"weight_var": weight_var, "input_var": input_var, "input_mean": input_mean}
    values = {name: as_float64(value, name) for name, value in given.items()}
    if bool((values["weight_var"] <= 0).any()):
        raise InvalidInput(f"weight_var must be positive; got {float(values['weight_var'].min())}.")
    if bool((values["input_var"] < 0).any()):
        raise InvalidInput(f"input_var must be at least 0; got {float(values['input_var'].min())}.")
    weight, variance, mean = torch.broadcast_tensors(*values.values())
    plain = not any(isinstance(value, Tensor) for value in given.values())
    return CavityProblem(ensemble, activation, weight, variance, mean, cell), plain
