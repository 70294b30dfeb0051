"""What theory forecasts for one family at one scale: stability, iterations, output, amplification of gradients."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from torch import Tensor

from separatrix.core import OutsideTheory, Result
from separatrix.core.networks.activations import Activation
from separatrix.matrices.ensembles import AbstractEnsemble
from separatrix.theory import MeanField, critical_weight_var, mean_field, resolvent_moment
from separatrix.theory.equilibrium_networks.families import is_bi_invariant

LARGEST = ((0.7, 1.2), (0.8, 2.0), (0.9, 5.0), (1.0, 10.0))
"""Up to this radius the slowest input of a batch needed at most about so many times the mean number of iterations."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Forecast(Result):
    """One family at one scale; NaN where theory predicts no stable equilibrium."""

    ensemble: str
    weight_scale: float
    """sqrt(V)."""
    critical_scale: float
    """sqrt(V) at which plain iteration stops converging, infinite width."""
    safe_scale: float
    """sqrt(V) at which the radius is still 1 minus twice the fluctuation of the edge at this width."""
    radius: float
    iterations: float
    """ln(tol) / ln(radius): the mean over inputs, within 25% for a radius up to 0.85."""
    iterations_largest: float
    """A rough figure for the slowest input of a batch."""
    h_var: float
    q: float
    gradient_gain: float
    """Root mean square growth of a gradient through the layer, sqrt of tr (1 - J)^{-T} (1 - J)^{-1}."""
    linear_m1: float
    """Second moment of the output of a linear network at this scale, NaN above its own limit."""
    linear_m2: float
    valid: bool
    note: str = ""


def edge_fluctuation(ensemble: AbstractEnsemble, width: int) -> float:
    """How far the spectral edge of one matrix strays, relative: N^(-1/2), or N^(-2/3) for the rigid spectra."""
    return width**-0.5 if is_bi_invariant(ensemble) else width ** (-2 / 3)


def iterations(radius: Tensor, tol: float) -> Tensor:
    """ln(tol) / ln(radius), infinite from 1 on."""
    return torch.where(radius < 1, math.log(tol) / radius.clamp(1e-12, 1 - 1e-15).log(), torch.inf)


def scale_for_radius(ensemble: AbstractEnsemble, problem: dict[str, object], target: float, critical: float) -> float:
    """sqrt(V) at which the predicted radius is ``target``; the radius grows with the scale."""
    low, high = 1e-6, critical**0.5 if math.isfinite(critical) else 100.0
    for _ in range(4):
        grid = torch.linspace(low, high, 17, dtype=torch.float64)[1:]
        radius = mean_field(ensemble, weight_var=grid.square(), **problem).radius  # type: ignore[arg-type]
        assert isinstance(radius, Tensor)
        above = (~(radius < target)).nonzero()  # NaN counts as above
        index = int(above[0]) if len(above) else len(grid) - 1
        low, high = (float(grid[index - 1]) if index else low), float(grid[index])
    return (low + high) / 2


def forecast(
    ensemble: AbstractEnsemble,
    activation: Activation,
    width: int,
    weight_scale: float,
    critical: float,
    safe: float,
    problem: dict[str, object],
    tol: float,
) -> Forecast:
    """The forecast of one family at one scale."""
    result = mean_field(ensemble, weight_var=weight_scale**2, **problem)  # type: ignore[arg-type]
    radius = float(result.radius)
    steps = float(iterations(torch.tensor(radius, dtype=torch.float64), tol)) if radius == radius else math.nan
    factor = next((factor for limit, factor in LARGEST if radius <= limit), math.nan)
    return Forecast(
        ensemble=ensemble.name,
        weight_scale=weight_scale,
        critical_scale=math.sqrt(critical),
        safe_scale=safe,
        radius=radius,
        iterations=steps,
        iterations_largest=steps * factor,
        h_var=float(result.h_var),
        q=float(result.q),
        gradient_gain=_gradient_gain(result),
        linear_m1=_linear(ensemble, weight_scale, 1),
        linear_m2=_linear(ensemble, weight_scale, 2),
        valid=bool(result.valid) and radius < 1,
        note=_note(result, weight_scale, safe, critical),
    )


def _gradient_gain(result: MeanField) -> float:
    """sqrt(E[(1 - a d)^-2] / (1 - replicon)): noise on the input, passed on by every unit to every other."""
    if not result.valid:
        return math.nan
    averages, a, _, _ = result.problem.averages(
        *(torch.tensor(float(v), dtype=torch.float64) for v in (result.q, result.chi))
    )
    own = float((averages.weights / (1 - a * averages.slopes).square()).sum())
    return math.sqrt(own / (1 - float(result.replicon)))


def _linear(ensemble: AbstractEnsemble, weight_scale: float, order: int) -> float:
    try:
        return float(resolvent_moment(ensemble, weight_scale**2, order))
    except OutsideTheory:
        return math.nan


def _note(result: MeanField, weight_scale: float, safe: float, critical: float) -> str:
    if not result.valid:
        return "no stable equilibrium predicted"
    if weight_scale**2 >= critical:
        return "equilibrium exists, plain iteration does not reach it: damp"
    if weight_scale > safe:
        return "single matrices may lie past the transition at this width"
    return ""


def critical_and_safe(
    ensemble: AbstractEnsemble, activation: Activation, width: int, problem: dict[str, object]
) -> tuple[float, float]:
    """V at the transition, and sqrt(V) that keeps twice the edge's fluctuation away from it."""
    inputs = {key: value for key, value in problem.items() if key != "phi"}
    critical = critical_weight_var(ensemble, activation, **inputs)  # type: ignore[arg-type]
    safe = scale_for_radius(ensemble, problem, 1 - 2 * edge_fluctuation(ensemble, width), critical)
    return critical, safe
