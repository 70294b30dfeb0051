"""Memory of the linearised network: what the state still knows of past inputs, at its mean state."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import ConvergenceWarning, Result
from separatrix.matrices import fisher_memory_curve, robust_eigenvalues

from ..steps.base import AbstractRecurrentMap

_EXACT_LIMIT = 48
"""Units up to which ill-conditioned memories are settled in ball arithmetic."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LinearisedMemory(Result):
    """Fisher memory of ``h' = J h + v s + noise`` with J at the mean state, noise of variance one."""

    spectral_radius: float
    curve: Float[Tensor, " k"] | None
    """J(k) for the input that enters most strongly; None if there is no stationary state or it cannot be settled."""
    totals: Float[Tensor, " i"] | None
    """Total memory of each input's direction."""
    spatial_eigenvalues: Float[Tensor, " n"] | None
    """Of the spatial Fisher matrix, falling; their sum is the number of units."""
    reason: str
    """Why there is none, and what to do; empty if there is."""
    linearisation: Float[Tensor, "n n"] = dataclasses.field(repr=False)
    sources: Float[Tensor, "n i"] = dataclasses.field(repr=False)
    """Directions by which the inputs enter, of length one."""


def linearised_memory(
    layer: AbstractRecurrentMap,
    x: Float[Tensor, "batch t i"],
    states: Float[Tensor, "batch t_plus_1 n"],
    n_steps: int = 100,
) -> LinearisedMemory:
    """Linearise at the mean input and the mean of the visited states, and compute its Fisher memory.

    Source:
        kerg2022, section 2.6.

    Cost: about 20 products of n x n matrices; up to 48 units, where double precision fails, seconds of exact
    arithmetic.
    """
    centre, entering = states[:, 1:].mean((0, 1)).unsqueeze(0), x.mean((0, 1)).unsqueeze(0)
    matrix = layer.jacobian(entering, centre)[0]
    by_input = layer.input_jacobian(entering, centre)[0]
    lengths = torch.linalg.vector_norm(by_input, dim=0)
    sources = by_input / lengths.clamp_min(1e-300)
    radius = float(robust_eigenvalues(matrix).abs().max())
    if radius >= 1:
        reason = (
            f"its spectral radius at the mean state is {radius:.4g}, so noise piles up without end and there is no "
            f"memory to speak of; matrices.fisher_memory_curve takes linearisation * {0.99 / radius:.4g}"
        )
        return LinearisedMemory(radius, None, None, None, reason, matrix, sources)
    if not float(lengths.max()) > 0:
        return LinearisedMemory(radius, None, None, None, "no input reaches the state there", matrix, sources)
    precision: Literal["auto", "double"] = "auto" if len(matrix) <= _EXACT_LIMIT else "double"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fisher_memory_curve(matrix, sources[:, int(lengths.argmax())], n_steps, precision=precision)
    if not bool(found.trustworthy):
        reason = "double precision cannot settle it; matrices.fisher_memory_curve with precision='auto' can, in minutes"
        return LinearisedMemory(radius, None, None, None, reason, matrix, sources)
    totals = (sources * (found.spatial_fisher @ sources)).sum(0)
    spatial = torch.linalg.eigvalsh(found.spatial_fisher).flip(0)
    return LinearisedMemory(radius, found.curve, totals, spatial, "", matrix, sources)
