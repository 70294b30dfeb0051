"""Free sums and products: spectra of A + B and of sqrt(A) B sqrt(A) for wide matrices in general position.

Both are solved by subordination. With the self-energy K(w) = w - 1/G(w) of each law, the transform of the result at z
is that of either law at its own point, and the two points belong together:

    sum      a = z - K_B(b),   b = z - K_A(a),   G(z) = G_A(a) = G_B(b)
    product  a = z / K_B(b),   b = z / K_A(a),   z G(z) = a G_A(a) = b G_B(b)

b is the only solution in the upper half-plane, so any solution found there is the right one, whatever path led to it.
Where G (or z G - 1) vanishes, inside a gap, one of the two points lies at infinity, never both; the equations are
then solved for the other one.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, final

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import formula
from separatrix.core.names import suggest_options

from .edges import product_edge
from .law import AbstractLaw, Local, ends_meet, leading_atoms, mass_at, require_law, require_positive_law
from .search import minimum

_HEIGHTS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
"""The way down to the real axis: each solve starts from the last, where the map contracts more."""

_MAX_STEPS = 60
_TOL = 1e-13
_NEAR = 1e-9
"""Relative residual below which a solve counts as reached, and may stop where Newton's method no longer lowers it."""

_RUNAWAY = 10.0
"""A point that lies this many times farther out than its partner is found again from the partner's side."""


@formula("separatrix", "free sum by subordination")
def free_sum(first: AbstractLaw, second: AbstractLaw) -> FreeSum:
    """The law of A + B for free A and B.

    Example:
        >>> from separatrix.theory.free_probability import Semicircle
        >>> total = free_sum(Semicircle(1.0), Semicircle(3.0))
        >>> round(float(total.density(torch.tensor(0.5))), 6)
        0.157907
    """
    require_law(first, "first")
    require_law(second, "second")
    return FreeSum(first, second)


@formula("agarwala2022", "App. C.1, Eqs. (99), (100), (110)", erratum="agarwala2022-eq122")
def free_product(positive: AbstractLaw, other: AbstractLaw) -> FreeProduct:
    """The law of sqrt(A) B sqrt(A) for free A >= 0 and any B; the same as that of A B.

    Raises:
        InvalidInput: the first law has negative values.
    """
    require_law(positive, "positive")
    require_law(other, "other")
    return FreeProduct(positive, other)


class _Image(NamedTuple):
    """One round trip a -> b -> a (or the other way) and how it changes."""

    value: Tensor
    slope: Tensor
    """In the point that is solved for."""
    drift: Tensor
    """In z, at that point held fixed."""
    inside: Tensor
    """Whether the points lie where the solution is unique."""
    partner: Tensor


Crossing: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""The partner's point, and its derivatives in the self-energy and in z."""


@dataclasses.dataclass(frozen=True)
class _Chart:
    """The equations solved for the point of ``own``."""

    own: AbstractLaw
    partner: AbstractLaw
    cross: Callable[[Tensor, Tensor], Crossing]
    inside: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, z: Tensor, point: Tensor) -> _Image:
        there = self.own.local(point)
        partner, partner_slope, partner_drift = self.cross(z, there.energy)
        back = self.partner.local(partner)
        value, slope, drift = self.cross(z, back.energy)
        slope = slope * back.energy_slope
        return _Image(
            value,
            slope * partner_slope * there.energy_slope,
            drift + slope * partner_drift,
            self.inside(point, partner),
            partner,
        )


class _Subordinated(AbstractLaw):
    """What free sums and products share; every transform costs one subordination solve per point."""

    @abc.abstractmethod
    def _charts(self) -> tuple[_Chart, _Chart]:
        """The chart that is tried first, and its partner."""

    @abc.abstractmethod
    def _value(self, z: Tensor, point: Tensor, local: Local) -> Tensor:
        """G(z) from the transforms of a law at its point."""

    @abc.abstractmethod
    def _derivative(self, z: Tensor, point: Tensor, local: Local, moved: Tensor) -> Tensor:
        """G'(z), when the point moves by ``moved`` per unit of z."""

    @formula("separatrix", "Stieltjes transform of free sums and products")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G(z) by subordination; NaN where the solve failed."""
        return self._with_slope(z)[0]

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G'(z), from differentiating the fixed point."""
        return self._with_slope(z)[1]

    def _with_slope(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """G and G' from one solve in the upper half-plane, continued to the lower by G(conj z) = conj G(z)."""
        upper = torch.complex(z.real, z.imag.abs().clamp_min(1e-12))
        first, second = self._charts()
        point, reached = _descend(first, upper, _RUNAWAY)
        both = torch.where(reached, self._reading(first, upper, point), torch.nan)
        again = ~reached
        if bool(again.any()):
            rest = upper[again]
            point, reached = _descend(second, rest, torch.inf)
            both[:, again] = torch.where(reached, self._reading(second, rest, point), both[:, again])
        value, slope = torch.where(z.imag < 0, both.conj(), both)
        return value, slope

    def _reading(self, chart: _Chart, z: Tensor, point: Tensor) -> Tensor:
        """G(z) and G'(z), stacked, at the fixed point of a chart."""
        image, local = chart(z, point), chart.own.local(point)
        moved = image.drift / (1 - image.slope)
        return torch.stack([self._value(z, point, local), self._derivative(z, point, local, moved)])


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class FreeSum(_Subordinated):
    """Free additive convolution of two laws; every transform costs one subordination solve per point."""

    first: AbstractLaw
    second: AbstractLaw

    def edges(self) -> tuple[float, float]:
        """Outer edges: the extrema of R_1(m) + R_2(m) + 1/m outside the support."""
        return self._edges

    @functools.cached_property
    def _edges(self) -> tuple[float, float]:
        return -self._edge(-1.0), self._edge(1.0)

    def inverse_stieltjes(self, m: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """R-transforms add: the inverses of both laws minus 1/m, where that lies outside the support."""
        z = self.first.inverse_stieltjes(m) + self.second.inverse_stieltjes(m) - 1 / m
        low, high = self.edges()
        return torch.where(torch.where(m > 0, z >= high, z <= low), z, torch.nan)

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """Sums of two atoms whose masses exceed 1 together, with the excess as mass."""
        values, masses = _common_atoms(self.first, self.second)
        return values.sum(-1), masses

    def _edge(self, side: float) -> float:
        first, second = (law.edges()[1 if side > 0 else 0] for law in (self.first, self.second))
        if ends_meet(self.first, first, self.second, second):
            return side * (first + second)
        top = min(_stieltjes_limit(law, side) for law in (self.first, self.second))

        def outer(log_m: Tensor) -> Tensor:
            m = side * log_m.exp()
            z = self.first.inverse_stieltjes(m) + self.second.inverse_stieltjes(m) - 1 / m
            return torch.nan_to_num(side * z, nan=torch.inf)

        logarithm = torch.tensor(top, dtype=torch.float64).log()
        return float(minimum(outer, logarithm - 40, logarithm))

    def _charts(self) -> tuple[_Chart, _Chart]:
        def cross(z: Tensor, energy: Tensor) -> Crossing:
            return z - energy, -torch.ones_like(energy), torch.ones_like(energy)

        def inside(point: Tensor, partner: Tensor) -> Tensor:
            return (point.imag > 0) & (partner.imag > 0)

        return _Chart(self.first, self.second, cross, inside), _Chart(self.second, self.first, cross, inside)

    def _value(self, z: Tensor, point: Tensor, local: Local) -> Tensor:
        return local.g

    def _derivative(self, z: Tensor, point: Tensor, local: Local, moved: Tensor) -> Tensor:
        return local.slope * moved


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class FreeProduct(_Subordinated):
    """Free multiplicative convolution of a positive law with any law, which may be centred and lack an S-transform."""

    positive: AbstractLaw
    other: AbstractLaw

    def __post_init__(self) -> None:
        require_positive_law(self.positive, "positive")

    def edges(self) -> tuple[float, float]:
        """Outer edges, each by a search along the real axis outside the support."""
        return self._edges

    @functools.cached_property
    def _edges(self) -> tuple[float, float]:
        return product_edge(self.positive, self.other, left=True), product_edge(self.positive, self.other)

    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """S-transforms multiply: both inverses times y / (1 + y), where that lies outside the support."""
        z = self.positive.inverse_moment(y) * self.other.inverse_moment(y) * y / (1 + y)
        low, high = self.edges()
        outside = torch.where(y > 0, z >= high, torch.where(y > -1, z < 0, z <= low))
        return torch.where(outside, z, torch.nan)

    def atoms(self) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
        """The larger mass of the two at zero; products of other atoms whose masses exceed 1 together, by the excess."""
        at_zero = max(mass_at(self.positive, 0.0), mass_at(self.other, 0.0))
        values, masses = _common_atoms(self.positive, self.other)
        nonzero = (values != 0).all(-1)
        values, masses = values[nonzero].prod(-1), masses[nonzero]
        if at_zero == 0:
            return values, masses
        zero, mass = torch.zeros(1, dtype=torch.float64), torch.tensor([at_zero], dtype=torch.float64)
        return torch.cat([zero, values]), torch.cat([mass, masses])

    def _charts(self) -> tuple[_Chart, _Chart]:
        def cross(z: Tensor, energy: Tensor) -> Crossing:
            inverse = 1 / torch.where(energy == 0, 1e-150, energy)
            return z * inverse, -z * inverse * inverse, inverse

        # the point of the positive law may lie anywhere off its support, that of the other above the real axis
        return (
            _Chart(self.other, self.positive, cross, lambda point, partner: point.imag > 0),
            _Chart(self.positive, self.other, cross, lambda point, partner: partner.imag > 0),
        )

    def _value(self, z: Tensor, point: Tensor, local: Local) -> Tensor:
        return point * local.g / z

    def _derivative(self, z: Tensor, point: Tensor, local: Local, moved: Tensor) -> Tensor:
        return ((local.g + point * local.slope) * moved - point * local.g / z) / z


def _descend(chart: _Chart, z: Tensor, runaway: float) -> tuple[Tensor, Tensor]:
    """The fixed point of a chart at z and whether it was reached; elementwise, followed down from above.

    An element whose point lies more than ``runaway`` times farther out than its partner is given up.
    """
    point = torch.complex(z.real, z.imag.clamp_min(_HEIGHTS[0]))
    for height in (*_HEIGHTS, 0.0):
        if height == 0.0 or bool((z.imag < height).any()):
            raised = torch.complex(z.real, z.imag.clamp_min(height))
            point, image = _newton(chart, raised, point, runaway)
    reached = ((image.value - point).abs() <= _NEAR * (1 + point.abs())) & image.inside
    return point, reached & ~_given_up(point, image, runaway)


def _newton(chart: _Chart, z: Tensor, point: Tensor, runaway: float) -> tuple[Tensor, _Image]:
    """Newton's point when it is admissible and lowers the residual, else the map's own value."""
    image = chart(z, point)
    stalled = torch.zeros(z.shape, dtype=torch.bool, device=z.device)
    for _ in range(_MAX_STEPS):
        residual = (image.value - point).abs()
        done = (residual <= _TOL * (1 + point.abs())) & image.inside | stalled | _given_up(point, image, runaway)
        if bool(done.all()):
            break
        newton = point + (image.value - point) / (1 - image.slope)
        usable = torch.isfinite(newton.real) & torch.isfinite(newton.imag)
        trial = torch.where(done, point, torch.where(usable, newton, image.value))
        tried = chart(z, trial)
        keep = (((tried.value - trial).abs() < residual) & tried.inside) | done
        if bool(keep.all()):
            point, image = trial, tried
            continue
        here = ~keep & (residual <= _NEAR * (1 + point.abs())) & image.inside  # rounding is all that is left
        stalled, keep, trial = stalled | here, keep | here, torch.where(here, point, trial)
        tried = _Image(*(torch.where(here, *pair) for pair in zip(image, tried, strict=True)))
        plain = chart(z, image.value)
        point = torch.where(keep, trial, image.value)
        image = _Image(*(torch.where(keep, *pair) for pair in zip(tried, plain, strict=True)))
    return point, image


def _given_up(point: Tensor, image: _Image, runaway: float) -> Tensor:
    return point.abs() > runaway * (1 + image.partner.abs())


def _common_atoms(first: AbstractLaw, second: AbstractLaw) -> tuple[Tensor, Tensor]:
    """Pairs of atoms (k, 2) whose masses exceed 1 together: eigenspaces of wide matrices that must meet; the excess."""
    (values, masses), (others, other_masses) = leading_atoms(first), leading_atoms(second)
    excess = masses[:, None] + other_masses - 1
    left, right = (excess > 1e-12).nonzero(as_tuple=True)
    return torch.stack([values[left], others[right]], -1), excess[left, right]


def _stieltjes_limit(law: AbstractLaw, side: float) -> float:
    """|G| just outside the edge on the given side, at most 1e12."""
    low, high = law.edges()
    edge = high if side > 0 else low
    outside = torch.tensor(edge + side * 1e-13 * max(1.0, abs(edge)), dtype=torch.float64)
    value = float(law.stieltjes(torch.complex(outside, torch.zeros_like(outside))).real.abs())
    return min(value, 1e12) * (1 - 1e-12) if value == value else 1e12
