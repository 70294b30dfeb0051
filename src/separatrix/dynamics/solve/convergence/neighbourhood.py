"""Is there a direction along which the map nearly stands still, and which nothing has moved along?

What a solve sees of (I - J)^-1 it sees in its steps, and those are images of the residual. A direction that contracts
by less than the tolerance leaves next to nothing there: of an error e along it the residual holds (1 - lambda) e, below
any tolerance, although e may be as large as the state. Such a map has all but a line of equilibria (near-conserved
quantities, integrators, line attractors make one), and where on it a solve comes to rest says nothing of where the
equilibrium is. So the map is looked at beside the state, along directions that were not chosen by the residual:

- in few dimensions along every unit, which is all of J, once; the error is then |(I - J)^-1 (f(z) - z)|, and what
  rounding adds. Where this is too large the same is measured with care, both ways and with longer steps.
- in many dimensions by a ``survey``, in a file of its own. Where a caller does without it, and the state grew far
  beyond its first image, along the state itself: what grows by 1 / (1 - lambda) does so along the slow direction.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from separatrix.core.arithmetic.linear_systems import inv_ex
from separatrix.core.arithmetic.transforms import any_true

from ..methods.base import States
from .stretch import inverse_of, pattern, probe, unit_vector

FEW = 16
"""Dimensions up to which a claim is looked at along every unit."""
_LENGTH = 10.0
"""Of these looks, in units of the tolerance."""
_ROUNDING = 30.0
"""Their least length in units of rounding."""
_OFF_BY = 2.0
"""Error, in units of the tolerance, from which on a claim is looked at with care, and refuted if it still is so large.
Where rounding hides a slow direction one look shows ten: its own length."""


def slow_along_some_unit(
    rows: Tensor, z: States, residual: States, allowed: Tensor, noise: Tensor, rounding: float, image: _Map
) -> tuple[Tensor, Tensor]:
    """Mask of those of some samples whose error is not within the tolerance, and how many evaluations each took.

    Cost: d evaluations and a d x d inverse for each sample; 2 d more if one is suspected.

    Args:
        rows: mask of the samples.
        z: the states.
        residual: f(z) - z.
        allowed: the largest distance from an equilibrium that counts as none.
        noise: size of the rounding error of the map.
        rounding: the same relative to the state.
        image: the map.
    """
    dim = z.shape[-1]
    length = torch.maximum(_LENGTH * allowed, _ROUNDING * noise)
    rows = rows & (length > 0)
    looks = torch.where(rows, dim, 0)
    if not any_true(rows):
        return rows, looks
    error = _error_by_units(z, residual, torch.where(rows, length, 0.0), noise, image)
    suspected = rows & ~(error <= _OFF_BY * allowed)
    if not any_true(suspected):
        return suspected, looks
    length = torch.maximum(length, 2 * rounding ** (1 / 3) * noise / rounding)
    error = error_along_all(suspected, z, residual, length, noise, image)
    return suspected & ~(error <= _OFF_BY * allowed), looks + torch.where(suspected, 2 * dim, 0)


def error_along_all(rows: Tensor, z: States, residual: States, length: Tensor, noise: Tensor, image: _Map) -> Tensor:
    """|(I - J)^-1 (f(z) - z)| and what rounding adds, from steps both ways along all directions of some samples."""
    dim = z.shape[-1]
    counts = torch.where(rows, dim, 0)
    moves, changes = probe(z, z + residual, counts, dim, length, pattern(z), image, noise=noise)
    inverse, norm = inverse_of(moves, changes, noise)
    step = torch.bmm(inverse, residual.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.vector_norm(step, dim=-1) + noise * norm


def slow_along_the_state(
    rows: Tensor, z: States, residual: States, allowed: Tensor, noise: Tensor, image: _Map
) -> tuple[Tensor, Tensor]:
    """The same by one look along the state."""
    if not any_true(rows):
        return rows, rows.to(torch.int64)
    length = torch.maximum(_LENGTH * allowed, _ROUNDING * noise)
    shift = torch.where(rows, length, 0.0).unsqueeze(-1) * unit_vector(z)
    change = torch.linalg.vector_norm(image(z + shift).detach() - z - residual - shift, dim=-1)
    error = (torch.linalg.vector_norm(residual, dim=-1) + noise) * length
    return rows & (error > _OFF_BY * allowed * torch.maximum(change, noise)), rows.to(torch.int64)


def _error_by_units(z: States, residual: States, length: Tensor, noise: Tensor, image: _Map) -> Tensor:
    """|(I - J)^-1 (f(z) - z)| and what rounding adds at worst, from one step along each unit."""
    dim = z.shape[-1]
    units = torch.eye(dim, dtype=z.dtype, device=z.device)
    here = z + residual
    columns = [image(z + length.unsqueeze(-1) * unit).detach() - here for unit in units]
    safe = torch.where(length > 0, length, 1.0)[:, None, None]
    slope = units - torch.stack(columns, dim=-1) / safe
    # where the map is not defined beside the state nothing was seen
    slope = torch.where(torch.isfinite(slope).all(-2, keepdim=True), slope, units).double()
    inverse, _ = inv_ex(slope)
    step = torch.bmm(inverse, residual.double().unsqueeze(-1)).squeeze(-1)
    size = torch.linalg.vector_norm(inverse.flatten(1), dim=-1)  # at least its largest stretch
    return (torch.linalg.vector_norm(step, dim=-1) + noise * size).to(z.dtype)


_Map = Callable[[Tensor], Tensor]
