"""Damped iteration z <- (1 - beta) z + beta f(z) for many maps at once, with an outcome for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, Result, require_integer, require_positive


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PicardSolution(Result):
    """Where the iteration ended, elementwise; NaN where it did not settle."""

    value: Float[Tensor, "*batch n"]
    residual: Float[Tensor, "*batch"]
    """Root mean square of f(z) - z at the last point looked at."""
    steps: Int[Tensor, "*batch"]
    """Evaluations of f until the residual fell below the tolerance, or in all."""
    outcome: Int[Tensor, "*batch"]
    last: Float[Tensor, "*batch n"]
    """The last point, also where it is not an equilibrium."""


def damped_picard(
    function: Callable[[Tensor], Tensor],
    start: Float[Tensor, "*batch n"],
    *,
    beta: float = 1.0,
    tol: float = 1e-8,
    max_steps: int = 1000,
) -> PicardSolution:
    """Iterate until the root mean square of f(z) - z is at most ``tol``, element by element.

    Elements that have settled are frozen, so an element's result does not depend on the others. With beta = 1 this is
    plain iteration, which converges where the spectral radius of the Jacobian is below 1; beta = 1/2 also where the
    spectrum lies in the disc of radius 2 around -1.

    Args:
        function: maps a batch of points to a batch of points, each on its own.
        start: first points.
        beta: step, in (0, 1].
        tol: on the residual.
        max_steps: evaluations of the function at most.
    """
    if not 0 < beta <= 1:
        raise InvalidInput(f"beta must lie in (0, 1]; got {beta}.")
    require_positive(tol, "tol")
    max_steps = require_integer(max_steps, "max_steps", at_least=1)
    z, batch = start, start.shape[:-1]
    steps = torch.zeros(batch, dtype=torch.long)
    running = torch.ones(batch, dtype=torch.bool)
    residual = torch.full(batch, torch.inf, dtype=start.dtype)
    outcome = torch.full(batch, int(Outcome.OUT_OF_STEPS))
    for _ in range(max_steps):
        image = function(z)
        size = (image - z).square().mean(-1).sqrt()
        residual = torch.where(running, size, residual)
        steps = steps + running
        settled, broken = running & (size <= tol), running & ~torch.isfinite(size)
        outcome = torch.where(settled, int(Outcome.CONVERGED), torch.where(broken, int(Outcome.NON_FINITE), outcome))
        running = running & ~settled & ~broken
        if not bool(running.any()):
            break
        z = torch.where(running[..., None], z + beta * (image - z), z)
    kept = (outcome == int(Outcome.CONVERGED))[..., None]
    return PicardSolution(torch.where(kept, z, torch.nan), residual, steps, outcome, z)
