"""A probability law on the real line and its transforms.

Conventions: the Stieltjes transform is G(z) = E[1 / (z - x)], with Im G < 0 where Im z > 0, and the density is
-Im G(x + i0) / pi. R(m) = G^{-1}(m) - 1/m. With M(z) = z G(z) - 1 the S-transform is S(y) = (1 + y) / (y M^{-1}(y)).
Everything is float64 / complex128: the transforms lose half the digits near an edge.
"""

from __future__ import annotations

import abc
import functools
import math
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import (
    InvalidInput,
    OutsideTheory,
    as_float64,
    not_a_formula,
    require_integer,
    require_kind,
    require_positive,
)
from separatrix.core.described import Described

from .search import distance_at_level

_FAR = 1e2
"""Beyond this many times the support, eight moments give M to rounding."""

_TINY = 1e-150
"""Stands for G where it vanishes exactly, at the centre of a symmetric gap."""

ETA = 1e-9
"""Distance from the real axis at which densities are read; they are off by the same order."""


class Local(NamedTuple):
    """The transforms of a law at given points."""

    g: Tensor
    slope: Tensor
    """G'."""
    energy: Tensor
    """The self-energy K = z - 1/G, which tends to the mean at infinity."""
    energy_slope: Tensor


class AbstractLaw(Described, abc.ABC):
    """A law on the real line.

    To add one, write ``stieltjes``, ``stieltjes_prime`` and ``edges`` (and ``atoms`` if there are any). Densities,
    moments, inverses, R- and S-transforms, free sums and free products follow; closed forms may replace the
    defaults of ``inverse_stieltjes`` and ``inverse_moment``, which search numerically.

    ``stieltjes`` is E[1 / (z - x)] for complex128 z of any shape, close to 1 / z far away: take the root of a product
    as the product of roots (``(z - a).sqrt() * (z - b).sqrt()``), so that no branch is cut outside the support, and
    the form that does not cancel. ``symmetric = True`` says that x and -x are alike. See
    ``docs/how-to/bring-your-own-part``. Checked by ``tests/theory/free_probability/test_law_contract.py``, where yours
    is one line.
    """

    symmetric: ClassVar[bool] = False
    """Whether x and minus x have the same law."""

    @abc.abstractmethod
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G(z), off the support, in both half-planes and on the real axis outside the support."""

    @abc.abstractmethod
    @not_a_formula("the derivative of stieltjes")
    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G'(z)."""

    @abc.abstractmethod
    @not_a_formula("read off the law")
    def edges(self) -> tuple[float, float]:
        """The smallest interval that holds the support."""

    @not_a_formula("read off the law")
    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Positions and masses of the atoms that are known exactly."""
        return torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64)

    @not_a_formula("stieltjes read beside the real axis")
    def density(self, x: Float[Tensor, "*batch"], eta: float | None = None) -> Float[Tensor, "*batch"]:
        """The density at real points, infinite at an atom, whose mass ``atoms`` reports.

        Args:
            x: real points.
            eta: read the smoothed density at this height above the axis instead, atoms included: for a law given by a
                sample, above the spacing of the sample (2 / n and more). By default the density is read 1e-9 above
                the axis, without what known atoms elsewhere add there; the error is of that order away from edges.
        """
        points = as_float64(x, "x")
        height = ETA if eta is None else require_positive(eta, "eta")
        smoothed = self.stieltjes(torch.complex(points, torch.full_like(points, height))).imag / -math.pi
        if eta is not None:
            return smoothed
        for place, mass in zip(*(part.tolist() for part in leading_atoms(self)), strict=True):
            if mass > 0:
                peak = mass * height / (math.pi * ((points - place).square() + height**2))
                # rounding of a peak must not leave a negative density beside it
                rest = torch.where(peak > 1e-3 * smoothed, (smoothed - peak).clamp_min(0.0), smoothed - peak)
                smoothed = torch.where(points == place, torch.inf, rest)
        return smoothed

    @not_a_formula("a contour integral of stieltjes")
    def moments(self, order: int) -> Float[Tensor, " order"]:
        """The first ``order`` moments, by the trapezium rule on a circle around the support."""
        order = require_integer(order, "order", at_least=1)
        low, high = self.edges()
        centre, radius = (low + high) / 2, 0.75 * (high - low) + 0.1 * max(1.0, abs(low), abs(high))
        angle = (torch.arange(256, dtype=torch.float64) + 0.5) * (2 * math.pi / 256)
        offset = radius * torch.polar(torch.ones_like(angle), angle)
        kernel = self.stieltjes(centre + offset) * offset
        powers = (centre + offset)[None] ** torch.arange(1, order + 1)[:, None]
        return (powers * kernel).real.mean(-1)

    @not_a_formula("a search, where a law has no closed form")
    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The real z outside the support with G(z) = m: right of it for m > 0, left for m < 0; NaN if there is none."""
        low, high = self.edges()
        # |z - edge| <= 1/|m|, because |G| is below that of an atom at the edge; a point mass attains it
        beyond = (1 + 1e-9) / m.abs()
        edge = torch.where(m > 0, torch.full_like(m, high), torch.full_like(m, low))
        side = torch.sign(m)

        def transform(distance: Tensor) -> tuple[Tensor, Tensor]:
            g, slope = self._with_slope(_on_axis(edge + side * distance))
            return side * g.real, slope.real

        return edge + side * distance_at_level(transform, m.abs(), _next_to(edge), beyond)

    @not_a_formula("a search, where a law has no closed form")
    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The real z outside the support with M(z) = y.

        Right of it (and of zero) for y > 0, left of zero for y in (-1, 0), between zero and the support for y < -1;
        NaN where there is none. The second and third branch need a law on the positive half-line.
        """
        low, high = self.edges()
        right, left, below = y > 0, (y < 0) & (y > -1), y < -1
        z = torch.full_like(y, torch.nan)
        reach = (max(abs(low), abs(high)) + 1) * (1 + 1 / y[right].abs())
        z[right] = self._with_moment(y[right], max(high, 0.0), 1.0, reach)
        if low >= 0 < high:
            z[left] = self._with_moment(y[left], 0.0, -1.0, high / y[left].abs())  # because |M(-d)| <= high / d
        if low > 0:
            z[below] = self._with_moment(y[below], low, -1.0, torch.full_like(y[below], low))
        return z

    @not_a_formula("the definition, from inverse_stieltjes")
    def r_transform(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """R(m) for real m not 0 in the range of G outside the support.

        Raises:
            OutsideTheory: m is not a value of G there.
        """
        m = as_float64(m, "m")
        z = self.inverse_stieltjes(m)
        if bool(z.isnan().any()):
            raise OutsideTheory(f"m must be a value of the Stieltjes transform outside the support; got {m.tolist()}.")
        return z - 1 / m

    @not_a_formula("the definition, from inverse_stieltjes")
    def r_prime(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """R'(m) = 1 / G'(z) + 1 / m^2 with G(z) = m."""
        m = as_float64(m, "m")
        z = self.r_transform(m) + 1 / m
        slope = self.stieltjes_prime(torch.complex(z, torch.zeros_like(z))).real
        return 1 / slope + 1 / m.square()

    @not_a_formula("the definition, from inverse_moment")
    def s_transform(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """S(y) for a law on the positive half-line that is not an atom at zero.

        Raises:
            OutsideTheory: the law has negative values, or y is not a value of M on the real axis.
        """
        if self.edges()[0] < 0:
            raise OutsideTheory(
                "the S-transform needs a law on the positive half-line (of a centred law it has two branches); "
                "use free_product, which does not need it."
            )
        y = as_float64(y, "y")
        z = self.inverse_moment(y)
        if bool(z.isnan().any()):
            raise OutsideTheory(f"y must be a value of M(z) = z G(z) - 1 on the real axis; got {y.tolist()}.")
        return (1 + y) / (y * z)

    @not_a_formula("the definition, from stieltjes")
    def moment_transform(
        self, z: Complex[Tensor, "*batch"]
    ) -> tuple[Complex[Tensor, "*batch"], Complex[Tensor, "*batch"]]:
        """M(z) = z G(z) - 1 = E[x / (z - x)] and its derivative, by the moments where the difference would cancel."""
        (g, g_slope), far = self._with_slope(z), self._is_far(z)
        value, slope = z * g - 1, g + z * g_slope
        if bool(far.any()):
            far_value, far_slope = self._far_moments(torch.where(far, z, 1.0))
            value, slope = torch.where(far, far_value, value), torch.where(far, far_slope, slope)
        return value, slope

    @not_a_formula("stieltjes and its derivative, with what subordination needs of them")
    def local(self, z: Complex[Tensor, "*batch"]) -> Local:
        """G, G', the self-energy K = z - 1/G and K' at points off the support, without cancellation at large z."""
        (g, slope), far = self._with_slope(z), self._is_far(z)
        inverse = 1 / torch.where(g == 0, _TINY, g)
        energy, energy_slope = z - inverse, 1 + slope * inverse * inverse
        if bool(far.any()):
            moment, moment_slope = self._far_moments(torch.where(far, z, 1.0))
            whole = 1 + moment
            g, slope = torch.where(far, whole / z, g), torch.where(far, (moment_slope - whole / z) / z, slope)
            energy = torch.where(far, z * moment / whole, energy)
            energy_slope = torch.where(far, moment / whole + z * moment_slope / whole**2, energy_slope)
        return Local(g, slope, energy, energy_slope)

    @functools.cached_property
    def _reach(self) -> float:
        return max(abs(edge) for edge in self.edges())

    @functools.cached_property
    def _leading_moments(self) -> Tensor:
        return self.moments(8)

    def _is_far(self, z: Tensor) -> Tensor:
        return z.abs() > _FAR * self._reach

    def _far_moments(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """M and M' by eight moments."""
        moments = self._leading_moments
        inverse, value, slope = 1 / z, torch.zeros_like(z), torch.zeros_like(z)
        for degree in range(len(moments), 0, -1):
            value = (value + moments[degree - 1]) * inverse
            slope = (slope - degree * moments[degree - 1]) * inverse
        return value, slope * inverse

    def _with_slope(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """G and G', where one solve can serve for both."""
        return self.stieltjes(z), self.stieltjes_prime(z)

    def _with_moment(self, y: Tensor, start: float, side: float, reach: Tensor) -> Tensor:
        """The z right (1) or left (-1) of ``start`` and at most ``reach`` away with M(z) = y; NaN if there is none."""

        def transform(distance: Tensor) -> tuple[Tensor, Tensor]:
            value, slope = self.moment_transform(_on_axis(start + side * distance))
            return side * value.real, slope.real

        if y.numel() == 0:
            return y
        return start + side * distance_at_level(transform, y.abs(), _next_to(torch.full_like(y, start)), reach)


def leading_atoms(law: AbstractLaw) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    """The known atoms of a law, equal positions united."""
    positions, masses = law.atoms()
    values, place = torch.unique(positions, return_inverse=True)
    return values, torch.zeros_like(values).index_add(0, place, masses)


def mass_at(law: AbstractLaw, place: float) -> float:
    """The known mass at one point."""
    positions, masses = leading_atoms(law)
    return float(masses[(positions - place).abs() <= 1e-12 * abs(place)].sum())


def ends_meet(first: AbstractLaw, end: float, second: AbstractLaw, other_end: float) -> bool:
    """Whether the atoms at two ends hold the whole mass together: their eigenspaces meet, and the end is kept.

    A point mass does so with every end of the other law.
    """
    return mass_at(first, end) + mass_at(second, other_end) >= 1 - 1e-12


def _on_axis(x: Tensor) -> Tensor:
    return torch.complex(x, torch.zeros_like(x))


def _next_to(edge: Tensor) -> Tensor:
    """The smallest distance from a point that changes it in float64."""
    return (1e-15 * edge.abs()).clamp_min(1e-300)


def require_law(law: object, name: str) -> None:
    """Refuse what is no law."""
    require_kind(law, name, AbstractLaw, "a law, such as Semicircle or MarchenkoPastur")


def require_positive_law(law: AbstractLaw, name: str) -> None:
    """Refuse a law with negative values."""
    if law.edges()[0] < 0:
        raise InvalidInput(f"{name} must be a law on the positive half-line; its support starts at {law.edges()[0]}.")
