"""The plane in which a search is drawn: principal components of the visited states, and how states move in it."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import suggest_options

from ..steps.base import AbstractRecurrentMap

_GRID = 15


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class PrincipalPlane:
    """Two directions of the state space and the motion in the plane through the mean of the visited states."""

    centre: Float[Tensor, " n"]
    axes: Float[Tensor, "n 2"]
    share: Float[Tensor, " 2"]
    """Part of the variance of the visited states along each axis."""
    visited: Float[Tensor, "s 2"]
    grid: Float[Tensor, "g 2"]
    field: Float[Tensor, "g 2"]
    """Change in one step at the points of the grid, the part within the plane."""

    def project(self, states: Float[Tensor, "k n"]) -> Float[Tensor, "k 2"]:
        """States in the coordinates of the plane."""
        return (states - self.centre) @ self.axes


def principal_plane(
    layer: AbstractRecurrentMap, x: Float[Tensor, " i"], visited: Float[Tensor, "s n"], found: Float[Tensor, "k n"]
) -> PrincipalPlane | None:
    """The plane of the visited states, wide enough for what was found; None for a state of one number.

    Cost: a singular value decomposition of the visited states and 225 steps of the network.
    """
    if layer.state_size < 2:
        return None
    centre = visited.mean(0)
    _, values, directions = torch.linalg.svd(visited - centre, full_matrices=len(visited) < 2)
    axes = directions[:2].mT
    if axes.shape[1] < 2:
        return None
    power = values.square()
    share = torch.zeros(2, dtype=torch.float64)
    share[: len(power[:2])] = power[:2] / power.sum().clamp_min(1e-300)
    seen = (visited - centre) @ axes
    every = torch.cat([seen, (found - centre) @ axes])
    low, high = every.amin(0), every.amax(0)
    span = (high - low).clamp_min(1e-3 * (1 + centre.abs().amax()))
    ticks = [torch.linspace(float(a - 0.1 * s), float(b + 0.1 * s), _GRID) for a, b, s in zip(low, high, span)]  # noqa: B905
    grid = torch.cartesian_prod(*ticks).double()
    states = centre + grid @ axes.mT
    field = layer.displacement(x.expand(len(grid), -1), states) @ axes
    return PrincipalPlane(centre, axes, share, seen, grid, field)
