"""What makes a point a point of rest: residuals, an estimate of its error, bounds of the state space."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..steps.base import AbstractRecurrentMap
from .portions import joined, portions

NEUTRAL = 1e-11
"""Smallest singular value of ``1 - J`` below which a point has a direction in which nothing tells where it rests."""


@final
@dataclasses.dataclass(frozen=True)
class Certificate:
    """Evidence for points of rest, one entry each."""

    residual: Float[Tensor, " b"]
    """Largest change of an entry of the state in one step."""
    relative_residual: Float[Tensor, " b"]
    """Largest gap of the map of rest over the largest entry (or one): what is left of the way once the factor of a
    closed gate is divided out."""
    error: Float[Tensor, " b"]
    """Estimated distance to the true point over the largest entry (or one): the length of the next Newton step."""
    neutral: Bool[Tensor, " b"]
    """Whether ``1 - J`` is singular to rounding: a continuum of points of rest, or gates too closed to see motion."""
    inside: Bool[Tensor, " b"]
    """Whether the state lies within the bounds of the state space."""

    def holds(self, tol: float) -> Bool[Tensor, " b"]:
        """Rest, absolutely and relatively, to the tolerance, inside, and not neutral."""
        small = (self.residual <= tol * 10) & (self.relative_residual <= tol) & (self.error <= tol)
        return small & self.inside & ~self.neutral


def certify(
    layer: AbstractRecurrentMap,
    x: Float[Tensor, "b i"],
    y: Float[Tensor, "b m"],
    limits: tuple[float, float] | None = None,
) -> Certificate:
    """Evidence that coordinates of rest y are fixed points of the layer at the inputs x.

    Args:
        layer: the map.
        x: constant inputs.
        y: coordinates of rest.
        limits: least and largest value of a state, where the user knows more than the layer tells.

    Cost: a singular value decomposition of the map's Jacobian for each point.
    """
    parts = [_certify(layer, x[part], y[part], limits) for part in portions(len(y), y.shape[-1])]
    fields = dataclasses.fields(Certificate)
    return Certificate(*(joined([getattr(part, field.name) for part in parts]) for field in fields))


def _certify(layer: AbstractRecurrentMap, x: Tensor, y: Tensor, limits: tuple[float, float] | None) -> Certificate:
    state = layer.lift(x, y)
    scale = y.abs().amax(-1).clamp_min(1.0)
    gap = layer.rest_map(x, y) - y
    matrix = torch.eye(y.shape[-1], dtype=y.dtype) - layer.rest_jacobian(x, y)
    left, values, right = torch.linalg.svd(matrix.nan_to_num())
    cut = max(NEUTRAL, 1e3 * layer.rounding) * values[:, :1].clamp_min(1.0)
    kept = torch.where(values > cut, values.clamp_min(1e-300).reciprocal(), 0.0)
    move = (right.mT @ (kept * (left.mT @ gap.unsqueeze(-1)).squeeze(-1)).unsqueeze(-1)).squeeze(-1)
    moved = layer.displacement(x, state).abs().amax(-1) / state.abs().amax(-1).clamp_min(1.0)
    return Certificate(
        residual=moved,
        relative_residual=gap.abs().amax(-1) / scale,
        error=move.abs().amax(-1) / scale,
        neutral=(values <= cut).any(-1),
        inside=_inside(layer, x, state, limits),
    )


def _inside(
    layer: AbstractRecurrentMap, x: Tensor, state: Tensor, limits: tuple[float, float] | None
) -> Bool[Tensor, " b"]:
    inside = torch.isfinite(state).all(-1)
    slack = 1e-9 + 10 * layer.rounding
    found = [] if limits is None else [(torch.full_like(state, limits[0]), torch.full_like(state, limits[1]))]
    if (own := layer.bounds(x)) is not None:
        found.append(own)
    for low, high in found:
        wide = slack * torch.maximum(low.abs().nan_to_num(posinf=0.0), high.abs().nan_to_num(posinf=0.0)).clamp_min(1.0)
        inside = inside & (state >= low - wide).all(-1) & (state <= high + wide).all(-1)
    return inside
