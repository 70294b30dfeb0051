"""Collocation points of an interval: those of Gauss, and those of Radau for what decays fast."""

from __future__ import annotations

import dataclasses
import functools
from typing import final

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.linear_systems import solve

POINTS = 6
"""Collocation points of an interval."""

FASTEST = 10.0
"""Rates, times the length of an interval, up to which its points are asked to follow a motion."""


@final
@dataclasses.dataclass(frozen=True)
class Points:
    """Collocation points of the unit interval, and integrals from 0 of their Lagrange polynomials.

    ``inner`` has the integrals up to each node, ``weights`` those over the whole interval. ``damped`` says whether a
    decay that is fast against the interval decays.
    """

    nodes: Float[Tensor, " s"]
    inner: Float[Tensor, "s s"]
    weights: Float[Tensor, " s"]
    damped: bool

    def followed(self, values: Tensor) -> Tensor:
        """Which rates, times the length of an interval, the points can follow.

        Fast decay stays neutral at the points of Gauss, and fast growth is taken for decay at those of Radau, on every
        mesh alike: a comparison of meshes does not see it.
        """
        if self.damped:
            return torch.maximum(values.real, values.imag.abs()) < FASTEST
        return values.abs() < FASTEST


@functools.cache
def gauss() -> Points:
    """Order 12 at the ends of the intervals; neutral orbits stay neutral on any mesh. On the CPU."""
    return _points(numpy.polynomial.legendre.leggauss(POINTS)[0], damped=False)


@functools.cache
def radau() -> Points:
    """Order 11: where the last two Legendre polynomials are equal; for orbits that are slow beside what contracts."""
    difference = [0.0] * (POINTS - 1) + [-1.0, 1.0]
    return _points(numpy.sort(numpy.polynomial.legendre.legroots(difference)), damped=True)


def _points(roots: numpy.ndarray, *, damped: bool) -> Points:
    nodes = torch.as_tensor((roots + 1) / 2)
    return Points(nodes, integrals(nodes, nodes), integrals(nodes, torch.ones(1, dtype=torch.float64))[0], damped)


def integrals(nodes: Float[Tensor, " s"], at: Float[Tensor, " places"]) -> Float[Tensor, "places s"]:
    """Of the Lagrange polynomials of the nodes, from 0 to some places."""
    exponents = torch.arange(len(nodes), dtype=torch.float64)
    powers = at.unsqueeze(-1) ** (exponents + 1) / (exponents + 1)
    return solve((nodes.unsqueeze(-1) ** exponents).mT, powers.mT).mT
