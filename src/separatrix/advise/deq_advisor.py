"""Before training an equilibrium network: which matrix family, which scale, how many iterations, and why."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, final

import torch
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, Result, require_integer, require_positive
from separatrix.core.networks.activations import Activation, Pointwise, find_activation
from separatrix.matrices.ensembles import ENSEMBLES, AbstractEnsemble, find_ensemble
from separatrix.theory import mean_field
from separatrix.theory.equilibrium_networks.cavity import Injection, require_monotone, require_theory
from separatrix.theory.equilibrium_networks.families import is_bi_invariant, known_facts

from .deq_forecast import Forecast, critical_and_safe, forecast, iterations, scale_for_radius

TARGET_RADIUS = (0.7, 0.8)

LIMITS = (
    "Theory is for infinite width, independent Gaussian input coordinates and weights at initialisation.",
    "Iterations are a mean over inputs, within 25% for a radius up to 0.85; near 1 they are off by a factor of 2, "
    "and the slowest input of a batch by up to 10.",
    "No theory is offered for LayerNorm, attention or convolution: measure the Jacobian of such cells instead.",
    "Weights with a non-zero mean or a low-rank part have outlying eigenvalues that these forecasts do not see.",
)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Curve(Result):
    """Radius and iterations of one family over scales, for the picture."""

    ensemble: str
    critical_scale: float
    weight_scale: list[float]
    radius: list[float]
    iterations: list[float]
    family: AbstractEnsemble = dataclasses.field(repr=False)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class DeqAdvice(Result):
    """A recommendation and the forecasts behind it."""

    phi: str
    width: int
    input_std: float
    input_mean: float
    cell: str
    tol: float
    ensemble: str
    """The recommended family."""
    weight_scale: float
    """The recommended (or given) sqrt(V)."""
    radius: float
    iterations: float
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    forecasts: tuple[Forecast, ...]
    injection: tuple[dict[str, float], ...]
    """Radius at the recommended scale if the input were weaker or stronger."""
    limits: tuple[str, ...] = LIMITS
    target_radius: tuple[float, float] = TARGET_RADIUS
    curves: tuple[Curve, ...] = dataclasses.field(default=(), repr=False)


def deq(
    phi: str | Activation | Pointwise = "tanh",
    width: int = 512,
    *,
    input_std: float | int = 1.0,
    input_mean: float | int = 0.0,
    ensemble: str | AbstractEnsemble = "any",
    weight_scale: float | int | str = "recommend",
    tol: float = 1e-5,
    budget: int | None = None,
    cell: Injection = "outside",
) -> DeqAdvice:
    """Advise on the initial matrix of an equilibrium network z = phi(W z) + x (or phi(W z + x)).

    Args:
        phi: activation, by name or as a function.
        width: N.
        input_std: standard deviation of what is injected, per coordinate.
        input_mean: its mean.
        ensemble: a family, its name, or ``"any"`` to compare all.
        weight_scale: sqrt(V), or ``"recommend"`` for a radius of 0.75.
        tol: relative accuracy asked of the iteration.
        budget: most iterations the solver may take; a scale that needs more draws a warning.
        cell: ``"outside"`` for phi(W z) + x, ``"inside"`` for phi(W z + x).

    Returns:
        Recommendation, a forecast per family, the effect of the injection scale, warnings and limits.

    Raises:
        InvalidInput: an argument out of range, or an unknown name.

    Cost: about a second per family.

    Example:
        >>> advice = deq("tanh", 512, ensemble="haar")
        >>> round(advice.weight_scale, 2), round(advice.iterations)
        (1.4, 40)
    """
    activation = find_activation(phi)
    width = require_integer(width, "width", at_least=2)
    require_positive(input_std, "input_std")
    if not 0 < tol < 1:
        raise InvalidInput(f"tol must lie in (0, 1); got {tol}.")
    given = _given_scale(weight_scale)
    problem: dict[str, object] = {
        "phi": activation,
        "input_var": float(input_std) ** 2,
        "input_mean": float(input_mean),
        "cell": cell,
    }
    families, left_out = _families(ensemble, activation)
    limits: dict[str, tuple[float, float]] = {}
    for family in families:
        alike = next(
            (f.name for f in families if f.name in limits and is_bi_invariant(f) and is_bi_invariant(family)), None
        )
        limits[family.name] = limits[alike] if alike else critical_and_safe(family, activation, width, problem)
    forecasts = []
    for family in families:
        critical, safe = limits[family.name]
        scale = _recommended(family, problem, critical, safe) if given is None else given
        forecasts.append(forecast(family, activation, width, scale, critical, safe, problem, tol))
    family, best, reasons = _choose(families, forecasts, given)
    return DeqAdvice(
        phi=activation.name,
        width=width,
        input_std=float(input_std),
        input_mean=float(input_mean),
        cell=cell,
        tol=tol,
        ensemble=best.ensemble,
        weight_scale=best.weight_scale,
        radius=best.radius,
        iterations=best.iterations,
        reasons=reasons,
        warnings=_warnings(best, budget, left_out),
        forecasts=tuple(forecasts),
        injection=_injection(family, problem, best),
        curves=tuple(_curve(family, problem, limits[family.name][0], tol) for family in families),
    )


def _families(
    ensemble: str | AbstractEnsemble, activation: Activation
) -> tuple[list[AbstractEnsemble], dict[str, str]]:
    """The families to compare, and those that theory does not cover with its reason."""
    if ensemble != "any":
        return [find_ensemble(ensemble)], {}
    covered, left_out = [], {}
    for family in ENSEMBLES.values():
        try:
            require_theory(family)
            require_monotone(family, activation)
        except OutsideTheory as refusal:
            left_out[family.name] = str(refusal)
        else:
            covered.append(family)
    return covered, left_out


def _given_scale(given: float | int | str) -> float | None:
    """The scale as a number, or none where one is to be recommended; refused before anything is computed."""
    if isinstance(given, str):
        if given != "recommend":
            raise InvalidInput(f"weight_scale must be a positive number or 'recommend'; got {given!r}.")
        return None
    require_positive(given, "weight_scale")
    return float(given)


def _recommended(family: AbstractEnsemble, problem: dict[str, object], critical: float, safe: float) -> float:
    return min(scale_for_radius(family, problem, sum(TARGET_RADIUS) / 2, critical), safe)


def _choose(
    families: list[AbstractEnsemble], forecasts: list[Forecast], given: float | None
) -> tuple[AbstractEnsemble, Forecast, tuple[str, ...]]:
    """Orthogonal unless it is unstable or absent; then the stable family that settles fastest."""
    pairs = list(zip(families, forecasts, strict=True))
    stable = [pair for pair in pairs if pair[1].valid]
    if not stable:
        family, widest = max(pairs, key=lambda pair: pair[1].safe_scale)
        return family, widest, (f"no family is stable at this scale; stay below {widest.safe_scale:.3g}",)
    rigid = next((pair for pair in stable if is_bi_invariant(pair[0]) and known_facts(pair[0]).excess < 1e-9), None)
    if rigid is not None:
        return *rigid, (
            "orthogonal weights: moduli of the eigenvalues of W do not fluctuate from matrix to matrix",
            "its length variance diverges more slowly than that of independent entries (exponent 3 instead of 4)"
            if given is None
            else "stable at the given scale",
        )
    family, best = min(stable, key=lambda pair: pair[1].iterations)
    return family, best, ("the family that settles fastest among those considered",)


def _warnings(best: Forecast, budget: int | None, left_out: dict[str, str]) -> tuple[str, ...]:
    found = []
    if not best.valid:
        found.append("no stable equilibrium is predicted at this scale: lower it")
    if best.note and best.valid:
        found.append(best.note)
    if best.valid and best.radius > 0.85:
        found.append(f"radius {best.radius:.3f}: close to the transition the forecast of iterations is rough")
    if budget is not None and best.valid and best.iterations_largest > budget:
        found.append(
            f"the slowest inputs may need about {best.iterations_largest:.0f} iterations, above the budget of {budget}"
        )
    found.extend(f"{name} was left out: {reason}" for name, reason in left_out.items())
    return tuple(found)


def _injection(
    family: AbstractEnsemble,
    problem: dict[str, object],
    best: Forecast,
    factors: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0),
) -> tuple[dict[str, float], ...]:
    """A weak injection leaves a saturating activation in its steep part, and the radius near its linear value."""
    variance = float(problem["input_var"])  # type: ignore[arg-type]
    changed: Any = {**problem, "input_var": variance * torch.tensor(factors, dtype=torch.float64).square()}
    result = mean_field(family, weight_var=best.weight_scale**2, **changed)
    assert isinstance(result.radius, Tensor)
    return tuple(
        {"input_std": factor * math.sqrt(variance), "radius": float(radius)}
        for factor, radius in zip(factors, result.radius, strict=True)
    )


def _curve(family: AbstractEnsemble, problem: dict[str, object], critical: float, tol: float) -> Curve:
    top = 1.1 * math.sqrt(critical) if math.isfinite(critical) else 10.0
    scales = torch.linspace(0.02 * top, top, 40, dtype=torch.float64)
    radius: Any = mean_field(family, weight_var=scales.square(), **problem).radius  # type: ignore[arg-type]
    steps = iterations(radius, tol)
    return Curve(family.name, math.sqrt(critical), scales.tolist(), radius.tolist(), steps.tolist(), family)
