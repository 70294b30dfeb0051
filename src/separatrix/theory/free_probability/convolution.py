"""Free sums and products: spectra of A + B and of sqrt(A) B sqrt(A) for wide matrices in general position.

Both are solved by subordination: the transform of the result at z is that of one law at a point w(z), where w is the
only fixed point, in the upper half-plane, of a map of that half-plane into itself. Because the fixed point is unique,
any solution found there is the right one, whatever path (plain iteration or Newton) led to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias, final

import torch
from jaxtyping import Complex
from torch import Tensor

from separatrix.core import formula

from .edges import product_edge
from .law import AbstractLaw, require_positive_law
from .search import minimum

Step: TypeAlias = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""z and w to the value and the derivative in w of the map whose fixed point is sought."""

_HEIGHTS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
"""The way down to the real axis: each solve starts from the last, where the map contracts more."""

_MAX_STEPS = 60
_TOL = 1e-13


@formula("separatrix", "free sum by subordination")
def free_sum(first: AbstractLaw, second: AbstractLaw) -> FreeSum:
    """The law of A + B for free A and B.

    Example:
        >>> from separatrix.theory.free_probability import Semicircle
        >>> total = free_sum(Semicircle(1.0), Semicircle(3.0))
        >>> round(float(total.density(torch.tensor(0.5))), 6)
        0.157907
    """
    return FreeSum(first, second)


@formula("agarwala2022", "App. C.1, Eqs. (99), (100), (110)", erratum="agarwala2022-eq122")
def free_product(positive: AbstractLaw, other: AbstractLaw) -> FreeProduct:
    """The law of sqrt(A) B sqrt(A) for free A >= 0 and any B; the same as that of A B.

    Raises:
        InvalidInput: the first law has negative values.
    """
    return FreeProduct(positive, other)


@final
@dataclasses.dataclass(frozen=True)
class FreeSum(AbstractLaw):
    """Free additive convolution of two laws; every transform costs one subordination solve per point."""

    first: AbstractLaw
    second: AbstractLaw

    @formula("separatrix", "Stieltjes transform of a free sum")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G(z) = G_1(w(z)) = (1 + M_1(w)) / w; NaN where the solve failed."""

        def transform(upper: Tensor) -> Tensor:
            w = self._point(upper)
            return (1 + self.first.moment_transform(w)[0]) / w

        return _mirrored(z, transform)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G_1'(w) w'(z), with w' from differentiating the fixed point."""

        def derivative(upper: Tensor) -> Tensor:
            w = self._point(upper)
            inner, inner_slope = _gap(self.first, w)
            _, outer_slope = _gap(self.second, upper + inner)
            moved = (1 + outer_slope) / (1 - outer_slope * inner_slope)
            return self.first.stieltjes_prime(w) * moved

        return _mirrored(z, derivative)

    def edges(self) -> tuple[float, float]:
        """Outer edges: the extrema of R_1(m) + R_2(m) + 1/m outside the support."""
        return -self._edge(-1.0), self._edge(1.0)

    def _edge(self, side: float) -> float:
        tops = [_stieltjes_limit(law, side) for law in (self.first, self.second)]
        top = min(tops)

        def outer(log_m: Tensor) -> Tensor:
            m = side * log_m.exp()
            z = self.first.inverse_stieltjes(m) + self.second.inverse_stieltjes(m) - 1 / m
            return torch.nan_to_num(side * z, nan=torch.inf)

        logarithm = torch.tensor(top, dtype=torch.float64).log()
        return float(minimum(outer, logarithm - 40, logarithm))

    def _point(self, z: Tensor) -> Tensor:
        def at(z: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
            inner, inner_slope = _gap(self.first, w)
            outer, outer_slope = _gap(self.second, z + inner)
            return z + outer, outer_slope * inner_slope

        return subordinate(at, z)


@final
@dataclasses.dataclass(frozen=True)
class FreeProduct(AbstractLaw):
    """Free multiplicative convolution of a positive law with any law.

    With m = G_B(w) and r = R_B(m) = w - 1/m the pair (m, w) solves m = E[a / (z - r a)] over the positive law, and
    the transform is E[1 / (z - r a)]. Written as a map of w this needs no S-transform, which a centred law lacks.
    """

    positive: AbstractLaw
    other: AbstractLaw

    def __post_init__(self) -> None:
        require_positive_law(self.positive, "positive")

    @formula("separatrix", "Stieltjes transform of a free product")
    def stieltjes(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """G(z) = G_A(z / r) / r = (1 + M_A(z / r)) / z; NaN where the solve failed."""

        def transform(upper: Tensor) -> Tensor:
            r, _ = self._reaction(self._point(upper))
            return (1 + self.positive.moment_transform(upper / r)[0]) / upper

        return _mirrored(z, transform)

    def stieltjes_prime(self, z: Complex[Tensor, "*batch"]) -> Complex[Tensor, "*batch"]:
        """From differentiating the fixed point."""

        def derivative(upper: Tensor) -> Tensor:
            w = self._point(upper)
            r, r_slope = self._reaction(w)
            moment, moment_slope = self.positive.moment_transform(upper / r)
            _, step_slope = self._map(upper, w)
            moved = -(moment_slope / moment**2) / (1 - step_slope)  # dw/dz
            u_moved = 1 / r - upper * r_slope * moved / r**2
            return (moment_slope * u_moved - (1 + moment) / upper) / upper

        return _mirrored(z, derivative)

    def edges(self) -> tuple[float, float]:
        """Outer edges; zero on the left when both laws are positive."""
        low, _ = self.other.edges()
        left = 0.0 if low >= 0 else product_edge(self.positive, self.other, left=True)
        return left, product_edge(self.positive, self.other)

    def _reaction(self, w: Tensor) -> tuple[Tensor, Tensor]:
        gap, slope = _gap(self.other, w)
        return -gap, -slope

    def _map(self, z: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        r, r_slope = self._reaction(w)
        moment, moment_slope = self.positive.moment_transform(z / r)
        moment_slope = moment_slope * (-z * r_slope / r**2)
        return r * (1 + 1 / moment), r_slope * (1 + 1 / moment) - r * moment_slope / moment**2

    def _point(self, z: Tensor) -> Tensor:
        return subordinate(self._map, z)


def subordinate(at: Step, z: Tensor) -> Tensor:
    """The fixed point w(z) of ``w -> at(z, w)`` in the upper half-plane, elementwise; NaN where it was not reached."""
    w = torch.complex(z.real, z.imag.clamp_min(_HEIGHTS[0]))
    for height in (*_HEIGHTS, 0.0):
        if height == 0.0 or bool((z.imag < height).any()):
            raised = torch.complex(z.real, z.imag.clamp_min(height))
            w, residual = _newton_in_half_plane(at, raised, w)
    reached = residual <= 1e-9 * (1 + w.abs())
    return torch.where(reached, w, torch.full_like(w, torch.nan))


def _newton_in_half_plane(at: Step, z: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Newton's point when it stays in the half-plane and lowers the residual, else the map's own value."""
    value, slope = at(z, w)
    for _ in range(_MAX_STEPS):
        residual = (value - w).abs()
        done = residual <= _TOL * (1 + w.abs())
        if bool(done.all()):
            break
        newton = w + (value - w) / (1 - slope)
        usable = (newton.imag > 0) & torch.isfinite(newton.real) & torch.isfinite(newton.imag)
        trial = torch.where(done, w, torch.where(usable, newton, value))
        trial_value, trial_slope = at(z, trial)
        keep = ((trial_value - trial).abs() < residual) | done
        if bool(keep.all()):
            w, value, slope = trial, trial_value, trial_slope
            continue
        plain_value, plain_slope = at(z, value)
        w = torch.where(keep, trial, value)
        value, slope = torch.where(keep, trial_value, plain_value), torch.where(keep, trial_slope, plain_slope)
    return w, (value - w).abs()


def _gap(law: AbstractLaw, w: Tensor) -> tuple[Tensor, Tensor]:
    """1/G(w) - w = -w M / (1 + M) and its derivative."""
    moment, slope = law.moment_transform(w)
    share = moment / (1 + moment)
    return -w * share, -share - w * slope / (1 + moment) ** 2


def _mirrored(z: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of the upper half-plane continued to the lower by G(conj z) = conj G(z)."""
    upper = torch.complex(z.real, z.imag.abs().clamp_min(1e-12))
    value = function(upper)
    return torch.where(z.imag < 0, value.conj(), value)


def _stieltjes_limit(law: AbstractLaw, side: float) -> float:
    """|G| just outside the edge on the given side, at most 1e12."""
    low, high = law.edges()
    edge = high if side > 0 else low
    outside = torch.tensor(edge + side * 1e-13 * max(1.0, abs(edge)), dtype=torch.float64)
    value = float(law.stieltjes(torch.complex(outside, torch.zeros_like(outside))).real.abs())
    return min(value, 1e12) * (1 - 1e-12) if value == value else 1e12
