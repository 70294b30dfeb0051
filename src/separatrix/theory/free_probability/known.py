"""Laws with closed-form transforms. Square roots are taken factor by factor, so that the cut is the support itself."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import InvalidInput, formula, require_number, require_positive
from separatrix.core.names import suggest_options

from .law import AbstractLaw


def _two_roots(z: Tensor, low: float, high: float) -> Tensor:
    """sqrt((z - low)(z - high)) with the cut on [low, high], behaving as z at infinity."""
    return torch.sqrt(z - low) * torch.sqrt(z - high)


def require_interval(low: float, high: float) -> None:
    """Refuse an interval that is empty or unbounded."""
    if not require_number(low, "low") < require_number(high, "high"):
        raise InvalidInput(f"low must be below high; got {low} and {high}.")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Semicircle(AbstractLaw):
    """Wigner's semicircle of the given variance: spectrum of a wide symmetric Gaussian matrix. R(m) = variance m."""

    variance: float = 1.0

    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive(self.variance, "variance")

    @formula("agarwala2022", "Eq. (101)")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """2 / (z + sqrt(z - r) sqrt(z + r)) with r the radius; no cancellation at large z."""
        radius = 2 * math.sqrt(self.variance)
        return 2 / (z + _two_roots(z, -radius, radius))

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """-G / sqrt(z^2 - r^2)."""
        radius = 2 * math.sqrt(self.variance)
        return -self.stieltjes(z) / _two_roots(z, -radius, radius)

    def edges(self) -> tuple[float, float]:
        """Plus and minus twice the standard deviation."""
        return -2 * math.sqrt(self.variance), 2 * math.sqrt(self.variance)

    @formula("separatrix", "inverse Stieltjes transform of the semicircle (textbook)")
    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """variance m + 1/m."""
        inside = m.abs() <= 1 / math.sqrt(self.variance)
        return torch.where(inside, self.variance * m + 1 / m, torch.nan)

    @formula("agarwala2022", "Eq. (107)", erratum="agarwala2022-eq108")
    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """(1 + y) sqrt(variance / y) for 0 < y <= 1."""
        return torch.where((y > 0) & (y <= 1), (1 + y) * (self.variance / y).sqrt(), torch.nan)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class MarchenkoPastur(AbstractLaw):
    """Spectrum of X X^T / n for X of shape (ratio n, n) with unit variance, times ``scale``. R = scale / (1 - c m).

    With c = ratio above 1 there is an atom of mass 1 - 1/c at zero.
    """

    ratio: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self.ratio, "ratio")
        require_positive(self.scale, "scale")

    def _bulk(self) -> tuple[float, float]:
        return self.scale * (1 - math.sqrt(self.ratio)) ** 2, self.scale * (1 + math.sqrt(self.ratio)) ** 2

    @formula("separatrix", "Stieltjes transform of Marchenko and Pastur (textbook)")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """The root of s c z G^2 - (z - s (1 - c)) G + 1 = 0 that behaves as 1/z, without cancellation at large z."""
        shifted = z - self.scale * (1 - self.ratio)
        return 2 / (shifted + _two_roots(z, *self._bulk()))

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """By differentiating the quadratic."""
        g = self.stieltjes(z)
        sc = self.scale * self.ratio
        return (g - sc * g * g) / (2 * sc * z * g - (z - self.scale * (1 - self.ratio)))

    def edges(self) -> tuple[float, float]:
        """From the atom at zero, if there is one, to the upper end of the bulk."""
        low, high = self._bulk()
        return (0.0 if self.ratio > 1 else low), high

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Mass 1 - 1/ratio at zero when the matrix has more rows than columns."""
        mass = [1 - 1 / self.ratio] if self.ratio > 1 else []
        return torch.zeros(len(mass), dtype=torch.float64), torch.tensor(mass, dtype=torch.float64)

    @formula("separatrix", "inverse Stieltjes transform of Marchenko and Pastur (textbook)")
    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """scale / (1 - scale c m) + 1/m, between the values of G at the edges."""
        root, sc = math.sqrt(self.ratio), self.scale * self.ratio
        above = -math.inf if self.ratio >= 1 else -1 / (self.scale * (root - self.ratio))
        inside = (m != 0) & (m >= above) & (m <= 1 / (self.scale * (root + self.ratio)))
        return torch.where(inside, self.scale / (1 - sc * m) + 1 / m, torch.nan)

    @formula("separatrix", "inverse moment transform of Marchenko and Pastur (textbook)")
    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """scale (1 + y)(1 + c y) / y, because S(y) = 1 / (scale (1 + c y))."""
        top = 1 / math.sqrt(self.ratio)
        inside = (y <= top) & (y > -min(1.0, 1 / self.ratio)) & (y != 0) | (y < -1) & (y >= -top)
        return torch.where(inside, self.scale * (1 + y) * (1 + self.ratio * y) / y, torch.nan)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class TwoPoint(AbstractLaw):
    """Plus or minus the standard deviation, half each: a symmetric orthogonal matrix."""

    variance: float = 1.0

    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive(self.variance, "variance")

    @formula("separatrix", "Stieltjes transform of two points (textbook)")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """z / (z^2 - variance)."""
        return z / (z * z - self.variance)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """-(z^2 + variance) / (z^2 - variance)^2."""
        return -(z * z + self.variance) / (z * z - self.variance) ** 2

    def edges(self) -> tuple[float, float]:
        """The two points."""
        return -math.sqrt(self.variance), math.sqrt(self.variance)

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Both points."""
        return torch.tensor(self.edges(), dtype=torch.float64), torch.full((2,), 0.5, dtype=torch.float64)

    @formula("separatrix", "inverse Stieltjes transform of two points (textbook)")
    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """R(m) + 1/m with R(m) = 2 v m / (1 + sqrt(1 + 4 v m^2)), the form without cancellation at small m."""
        return 2 * self.variance * m / (1 + (1 + 4 * self.variance * m * m).sqrt()) + 1 / m

    @formula("separatrix", "inverse moment transform of two points (textbook)")
    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """sqrt(variance (1 + y) / y) for y > 0."""
        return torch.where(y > 0, (self.variance * (1 + y) / y).sqrt(), torch.nan)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Bernoulli(AbstractLaw):
    """1 with probability p, else 0: a projection, or the slope of a hard-tanh."""

    p: float

    def __post_init__(self) -> None:
        if not 0 < require_number(self.p, "p") <= 1:
            raise InvalidInput(f"p must lie in (0, 1]; got {self.p}.")

    @formula("agarwala2022", "Eq. (111)")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """(1 - p) / z + p / (z - 1)."""
        zeros = (1 - self.p) / z if self.p < 1 else 0.0  # no pole at zero without mass there
        return zeros + self.p / (z - 1)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """Term by term."""
        zeros = (1 - self.p) / (z * z) if self.p < 1 else 0.0
        return -zeros - self.p / (z - 1) ** 2

    def edges(self) -> tuple[float, float]:
        """0 and 1; at p = 1 both are 1."""
        return (0.0 if self.p < 1 else 1.0), 1.0

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Both points, as far as they have mass."""
        positions, masses = ([0.0, 1.0], [1 - self.p, self.p]) if self.p < 1 else ([1.0], [1.0])
        return torch.tensor(positions, dtype=torch.float64), torch.tensor(masses, dtype=torch.float64)

    @formula("agarwala2022", "Eqs. (113), (114)")
    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """(p + y) / y, because S(y) = (1 + y) / (p + y)."""
        inside = (y > -self.p) & (y != 0) | (y < -1 if self.p == 1 else torch.zeros_like(y, dtype=torch.bool))
        return torch.where(inside, (self.p + y) / y, torch.nan)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class UniformLaw(AbstractLaw):
    """Uniform on an interval."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        require_interval(self.low, self.high)

    @formula("separatrix", "Stieltjes transform of the uniform law (textbook)")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """(log(z - low) - log(z - high)) / (high - low)."""
        return (torch.log(z - self.low) - torch.log(z - self.high)) / (self.high - self.low)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """-1 / ((z - low)(z - high))."""
        return -1 / ((z - self.low) * (z - self.high))

    def edges(self) -> tuple[float, float]:
        """The interval."""
        return self.low, self.high

    @formula("separatrix", "inverse Stieltjes transform of the uniform law (textbook)")
    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """high + (high - low) / (exp(m (high - low)) - 1)."""
        length = self.high - self.low
        return self.high + length / torch.expm1(m * length)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Arcsine(AbstractLaw):
    """Arcsine law on [-radius, radius]: the real part of a uniform orthogonal matrix, times the radius."""

    radius: float = 1.0

    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_positive(self.radius, "radius")

    @formula("separatrix", "Stieltjes transform of the arcsine law (textbook)")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """1 / (sqrt(z - r) sqrt(z + r))."""
        return 1 / _two_roots(z, -self.radius, self.radius)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """-z G^3."""
        return -z * self.stieltjes(z) ** 3

    def edges(self) -> tuple[float, float]:
        """Plus and minus the radius."""
        return -self.radius, self.radius

    @formula("separatrix", "inverse Stieltjes transform of the arcsine law (textbook)")
    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """sqrt(1 + r^2 m^2) / m."""
        return (1 + self.radius**2 * m * m).sqrt() / m
