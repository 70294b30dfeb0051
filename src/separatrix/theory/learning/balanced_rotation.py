"""The weights themselves: the hidden rotation that turns a factor of the Gram matrix into the gradient-flow weights.

Along gradient flow ``Q' dQ/dt`` is symmetric: Q(t) is the horizontal lift of its Gram matrix, the path that never
turns the hidden basis without need. On a grid of times the lift is the chain of rotations that bring each factor
nearest to the one before it. The chain is symmetric in time, so its error runs in even powers of the step and
extrapolates.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import NotConverged

from .balanced_factor import LATEST, mode_coordinates
from .balanced_modes import BalancedModes

_FIRST_STEPS = 4
_MOST_LEVELS = 9


def horizontal_lift(modes: BalancedModes, t: Float[Tensor, " times"], tol: float) -> Float[Tensor, "times *batch io h"]:
    """Stacked weights ``Q(t)`` at times in units of tau, the rotation accurate to ``tol`` relative to ``|Q|``.

    Between successive times the grid is uniform in ``log(1 + rate t)`` and is doubled, with Richardson extrapolation,
    until the weights settle; the last step turns the exact factor onto them, so the Gram matrix stays exact.

    Raises:
        NotConverged: the weights still changed by more than ``tol`` on the finest grid.
    """
    ordered, place = t.clamp_max(LATEST).unique(sorted=True, return_inverse=True)
    if ordered.numel() == 0 or bool(ordered[-1] == 0):
        return modes.expand(modes.lower.expand(t.shape[0], *modes.lower.shape)) @ modes.rotation.mT
    knots = torch.cat([ordered.new_zeros(1), ordered]) if bool(ordered[0] > 0) else ordered
    coordinates = mode_coordinates(modes, knots)
    table: list[Tensor] = []
    change = float("inf")
    for level in range(_MOST_LEVELS):
        previous = table
        table = [_chain(modes, knots, _FIRST_STEPS * 2**level)]
        for order, coarse in enumerate(previous, start=1):
            table.append(table[-1] + (table[-1] - coarse) / (4**order - 1))
        if previous:
            size = torch.linalg.matrix_norm(table[-1])
            moved = torch.linalg.matrix_norm(table[-1] - previous[-1]) / size.clamp_min(torch.finfo(t.dtype).tiny)
            change = float(moved.max())
            if change <= tol:
                break
    else:
        raise NotConverged(
            f"the hidden rotation still changes by {change:.1g} (asked for {tol:g}); "
            "ask for more times in between, or loosen tol."
        )
    turned = coordinates @ _polar(coordinates.mT @ table[-1])
    stacked = modes.expand(turned) @ modes.rotation.mT
    return stacked[knots.shape[0] - ordered.shape[0] :][place]


def _chain(modes: BalancedModes, knots: Tensor, steps: int) -> Tensor:
    """Mode coordinates at the knots: each factor turned nearest to the one before it, ``steps`` factors per knot."""
    rate = 2 * modes.rates.abs().amax() + modes.lower.square().sum((-2, -1)).amax()
    warped = torch.log1p(rate * knots)
    part = torch.arange(1, steps + 1, dtype=knots.dtype, device=knots.device) / steps
    inner = warped[:-1, None] + (warped[1:] - warped[:-1])[:, None] * part
    inner[:, -1] = warped[1:]
    grid = torch.cat([knots[:1], (torch.expm1(inner) / rate).reshape(-1)])
    grid[steps::steps] = knots[1:]
    factors = torch.cat([modes.lower[None], mode_coordinates(modes, grid[1:])])
    turns = _polar(factors[1:].mT @ factors[:-1])
    total = torch.eye(modes.lower.shape[-1], dtype=knots.dtype, device=knots.device)
    kept = [factors[0]]
    for index in range(turns.shape[0]):
        total = turns[index] @ total
        if (index + 1) % steps == 0:
            kept.append(factors[index + 1] @ total)
    return torch.stack(kept)


def _polar(matrix: Tensor) -> Tensor:
    """The rotation nearest to a square matrix."""
    u, _, vh = torch.linalg.svd(matrix)
    return u @ vh
