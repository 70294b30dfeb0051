"""Laws given by numbers: a sample, weighted atoms, or atoms with a density on an interval."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, final

import numpy
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import InvalidInput, as_float64, in_words, not_a_formula, require_integer
from separatrix.core.names import suggest_options

from .known import require_interval
from .law import AbstractLaw


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class Discrete(AbstractLaw):
    """Weighted atoms; a sample (eigenvalues of a matrix, slopes of a network) when no weights are given.

    Args:
        values: positions; those without mass are left out.
        weights: masses, not negative; normalised to sum 1. Equal if left out.

    Cost: every transform is O(points x atoms).
    """

    values: Any
    weights: Any = None

    def __post_init__(self) -> None:
        values = as_float64(self.values, "values").reshape(-1)
        if values.numel() == 0:
            raise InvalidInput("values must hold at least one number.")
        weights = torch.ones_like(values) if self.weights is None else self.weights
        values, weights = _weighted(values, weights, "values", "weights")
        if weights.numel() == 0:
            raise InvalidInput("weights must not all be zero.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", weights / weights.sum())

    @not_a_formula("a sum over the atoms that were given")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """Sum of weights / (z - value)."""
        return (self.weights / (z[..., None] - self.values)).sum(-1)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """Minus the sum of weights / (z - value)^2."""
        return -(self.weights / (z[..., None] - self.values) ** 2).sum(-1)

    def edges(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return float(self.values.min()), float(self.values.max())

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """All of it."""
        return self.values, self.weights

    def moments(self, order: int) -> Float[Tensor, " order"]:
        """Sums of powers."""
        powers = self.values[None] ** torch.arange(1, order + 1, dtype=torch.float64)[:, None]
        return (powers * self.weights).sum(-1)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class AtomsAndDensity(AbstractLaw):
    """Exact atoms and a bounded density on [low, high].

    Close to the interval the integral of density(t) / (z - t) is taken as that of the difference to the density at
    the nearest point, which is smooth, plus a logarithm; so the transform is right down to the real axis.

    Args:
        continuous: the density, a function of points, vectorised; the remaining mass is 1 minus the sum of ``masses``.
        low: left end of the interval.
        high: right end of the interval.
        positions: of the atoms.
        masses: of the atoms.
        panels: of the Gauss-Legendre rule with 16 points each.
    """

    continuous: Callable[[Tensor], Tensor]
    low: float
    high: float
    positions: Any = ()
    masses: Any = ()
    panels: int = 64

    def __post_init__(self) -> None:
        if not callable(self.continuous):
            raise InvalidInput(f"continuous must be a function of points; got {in_words(self.continuous)}.")
        require_interval(self.low, self.high)
        require_integer(self.panels, "panels", at_least=1)
        positions, masses = _weighted(self.positions, self.masses, "positions", "masses")
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "masses", masses)
        nodes, lengths = numpy.polynomial.legendre.leggauss(16)
        cuts = torch.linspace(self.low, self.high, self.panels + 1, dtype=torch.float64)
        half = (cuts[1:] - cuts[:-1])[:, None] / 2
        points = ((cuts[1:] + cuts[:-1])[:, None] / 2 + half * torch.from_numpy(nodes)).reshape(-1)
        object.__setattr__(self, "_points", points)
        object.__setattr__(self, "_lengths", (half * torch.from_numpy(lengths)).reshape(-1))
        density = self.continuous(points)
        if not isinstance(density, Tensor) or density.shape != points.shape or bool((density < 0).any()):
            raise InvalidInput(
                f"continuous must give one number of at least 0 for each point; for {len(points)} points it gave "
                f"{in_words(density)}."
            )
        total = float((density * self._lengths).sum() + masses.sum())  # type: ignore[attr-defined]
        if not abs(total - 1) <= 1e-6:
            raise InvalidInput(f"density and masses must add up to 1; they add up to {total:.8g}.")

    @not_a_formula("an integral of the density that was given")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """Atoms plus the integral of the density."""
        points, lengths = self._points, self._lengths  # type: ignore[attr-defined]
        nearest = self.continuous(z.real.clamp(self.low, self.high))
        difference = (self.continuous(points) - nearest[..., None]) / (z[..., None] - points)
        logarithm = torch.log(z - self.low) - torch.log(z - self.high)
        atoms = (self.masses / (z[..., None] - self.positions)).sum(-1)
        return (difference * lengths).sum(-1) + nearest * logarithm + atoms

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """By a symmetric difference along the real axis, accurate to about 1e-8."""
        step = 1e-5 * (self.high - self.low)
        return (self.stieltjes(z + step) - self.stieltjes(z - step)) / (2 * step)

    def edges(self) -> tuple[float, float]:
        """The interval and the atoms."""
        ends = [self.low, self.high, *self.positions.tolist()]
        return min(ends), max(ends)

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """The exact ones."""
        return self.positions, self.masses


def _weighted(places: Any, masses: Any, name: str, mass_name: str) -> tuple[Tensor, Tensor]:
    """Places and their masses as flat float64 tensors, without the places that have no mass.

    A place without mass is no part of a law: it would widen the support and be a pole that is none.
    """
    places, masses = as_float64(places, name).reshape(-1), as_float64(masses, mass_name).reshape(-1)
    if places.shape != masses.shape or bool((masses < 0).any()):
        came = f"{len(masses)}" if places.shape != masses.shape else f"{float(masses.min()):g}"
        raise InvalidInput(
            f"{mass_name} must be one number of at least 0 for each of {len(places)} {name}; got {came}."
        )
    return places[masses > 0], masses[masses > 0]
