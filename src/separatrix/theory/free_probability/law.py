"""A probability law on the real line and its transforms.

Conventions: the Stieltjes transform is G(z) = E[1 / (z - x)], with Im G < 0 where Im z > 0, and the density is
-Im G(x + i0) / pi. R(m) = G^{-1}(m) - 1/m. With M(z) = z G(z) - 1 the S-transform is S(y) = (1 + y) / (y M^{-1}(y)).
Everything is float64 / complex128: the transforms lose half the digits near an edge.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, as_float64, not_a_formula, require_integer

from .search import root_of_decreasing

_FAR = 1e3
"""Beyond this many times the support, six moments give M to rounding."""

ETA = 1e-9
"""Distance from the real axis at which densities are read; they are off by the same order."""


class AbstractLaw(abc.ABC):
    """A law on the real line.

    To add one, write ``stieltjes``, ``stieltjes_prime`` and ``edges`` (and ``atoms`` if there are any). Densities,
    moments, inverses, R- and S-transforms, free sums and free products follow; closed forms may replace the
    defaults of ``inverse_stieltjes`` and ``inverse_moment``, which search numerically.
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
    def density(self, x: Float[Tensor, "*batch"], eta: float = ETA) -> Float[Tensor, "*batch"]:
        """The density at real points, read at height ``eta``; the error is of order ``eta`` away from edges.

        For a law given by a sample choose ``eta`` above the spacing of the sample (2 / n and more).
        """
        points = as_float64(x, "x")
        return self.stieltjes(torch.complex(points, torch.full_like(points, eta))).imag / -math.pi

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
        beyond = 1 / m.abs()  # |z - edge| <= 1/|m|, because |G| is below that of an atom at the edge
        edge = torch.where(m > 0, torch.full_like(m, high), torch.full_like(m, low))
        side = torch.sign(m)

        def excess(distance: Tensor) -> Tensor:
            z = torch.complex(edge + side * distance, torch.zeros_like(distance))
            return self.stieltjes(z).real.abs() - m.abs()

        return edge + side * _decreasing_root(excess, beyond, near=edge)

    @not_a_formula("a search, where a law has no closed form")
    def inverse_moment(self, y: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The real z right of the support with M(z) = y > 0, or left of zero with M(z) = y in (-1, 0).

        NaN where there is none. The second branch needs a law on the positive half-line.
        """
        low, high = self.edges()

        def excess_right(distance: Tensor) -> Tensor:
            return self._moment_function(max(high, 0.0) + distance) - y

        def excess_left(distance: Tensor) -> Tensor:
            return self._moment_function(-1 / distance) - y

        reach = (max(abs(low), abs(high)) + 1) * (1 + 1 / y.abs())
        right = max(high, 0.0) + _decreasing_root(excess_right, reach, near=torch.full_like(y, max(high, 0.0)))
        if low < 0:
            return torch.where(y > 0, right, torch.nan)
        left = -1 / _decreasing_root(excess_left, torch.full_like(y, 1e300), near=torch.zeros_like(y))
        return torch.where(y > 0, right, left)

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
        g = self.stieltjes(z)
        low, high = self.edges()
        far = z.abs() > _FAR * max(abs(low), abs(high))
        if not bool(far.any()):
            return z * g - 1, g + z * self.stieltjes_prime(z)
        moments = _leading_moments(self).to(z.dtype)
        degrees = torch.arange(1, len(moments) + 1, dtype=torch.float64)
        terms = moments * torch.where(far, 1 / z, 0)[..., None] ** degrees
        value = torch.where(far, terms.sum(-1), z * g - 1)
        slope = torch.where(far, -(terms * degrees).sum(-1) / z, g + z * self.stieltjes_prime(z))
        return value, slope

    def _moment_function(self, z: Tensor) -> Tensor:
        return self.moment_transform(torch.complex(z, torch.zeros_like(z)))[0].real


@functools.lru_cache(maxsize=256)
def _leading_moments(law: AbstractLaw) -> Tensor:
    return law.moments(6)


def _decreasing_root(function: Callable[[Tensor], Tensor], reach: Tensor, near: Tensor) -> Tensor:
    """The root in (0, reach] of a decreasing function of the distance from ``near``; NaN where the sign is wrong.

    By bisection of the logarithm, from the smallest distance that changes ``near`` in float64.
    """
    low, high = (1e-15 * near.abs()).clamp_min(1e-300).log(), reach.log()
    exists = ~(function(low.exp()) < 0) & (function(high.exp()) <= 0)
    root = root_of_decreasing(lambda logarithm: function(logarithm.exp()), low, high).exp()
    return torch.where(exists, root, torch.nan)


def require_positive_law(law: AbstractLaw, name: str) -> None:
    """Refuse a law with negative values."""
    if law.edges()[0] < 0:
        raise InvalidInput(f"{name} must be a law on the positive half-line; its support starts at {law.edges()[0]}.")
