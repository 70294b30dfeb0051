"""When to stop learning a new task: the best compromise between old and new along the exact curve.

The curve is scanned on 200 times spaced evenly in the logarithm, from a thousandth of the fastest time scale to a
thousand times the slowest, and refined inside the best bracket. A single bounded search would miss the narrow
minimum of a large balance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, ShapeError, as_float64, not_a_formula

from .balanced_factor import mode_coordinates
from .balanced_flow import BalancedFlow
from .forgetting import task_loss

_SCAN = 200
_REFINE = 80


@final
@dataclasses.dataclass(frozen=True, repr=False)
class StoppingTime(Result):
    """Where along the training on a new task an old one is best served too. Infinite times mean: never."""

    best_time: Float[Tensor, "*batch"]
    best_loss: Float[Tensor, "*batch"]
    """Smallest weighted sum of excess losses along the curve."""
    equal_time: Float[Tensor, "*batch"]
    """First time at which the loss on the old task is no longer below that on the new one."""
    budget_time: Float[Tensor, "*batch"]
    """First time at which the loss on the old task exceeds the budget."""
    peak_loss: Float[Tensor, "*batch"]
    """Largest loss on the old task along the way."""


@not_a_formula("a search along the exact curve of BalancedFlow")
def best_stopping_time(
    flow: BalancedFlow, old_task: Any, weights: tuple[float, float] = (1.0, 1.0), budget: float | None = None
) -> StoppingTime:
    """Best time to stop a flow that trains on its task while an old task is to be kept.

    Args:
        flow: exact flow on the new task, from the state in which the old task left the network.
        old_task: correlation of the old task, (*batch, n_out, n_in).
        weights: of the old and of the new task in the sum that is minimised.
        budget: loss on the old task that must not be exceeded, for ``budget_time``.

    Cost: about 500 evaluations of the exact solution.
    """
    old = as_float64(old_task, "old_task")
    if old.shape[-2:] != flow.target.shape[-2:]:
        raise ShapeError(f"old_task must be (..., {flow.n_out}, {flow.n_in}); got shape {tuple(old.shape)}.")
    if min(weights) < 0 or max(weights) == 0:
        raise InvalidInput(f"weights must not be negative and not both zero; got {weights}.")
    rates = 2 * flow.modes.rates.abs()
    fastest = rates.amax(-1).clamp_min(1e-12)
    slowest = torch.where(rates > 1e-9 * fastest[..., None], rates, fastest[..., None]).amin(-1)
    steps = torch.linspace(0, 1, _SCAN, dtype=torch.float64).reshape(-1, *(1,) * fastest.ndim)
    scan = (1e-3 / fastest) * (1e6 * fastest / slowest) ** steps
    scan = torch.cat([torch.zeros_like(scan[:1]), scan]) / flow.clock

    def both(t: Tensor) -> tuple[Tensor, Tensor]:
        product = _product_at(flow, t)
        return task_loss(product, old), task_loss(product, flow.target)

    def joint(t: Tensor) -> Tensor:
        first, second = both(t)
        return weights[0] * first + weights[1] * second

    on_old, on_new = both(scan)
    best_time, best_loss = _refine(joint, scan, weights[0] * on_old + weights[1] * on_new)
    equal = _first_crossing(lambda t: torch.sub(*both(t)), scan, on_old - on_new)
    excess = on_old - (float("inf") if budget is None else budget)
    spent = _first_crossing(lambda t: both(t)[0] - (budget or 0.0), scan, excess)
    return StoppingTime(best_time, best_loss, equal, spent, on_old.amax(0))


def _product_at(flow: BalancedFlow, t: Float[Tensor, " times *batch"]) -> Float[Tensor, "times *batch o i"]:
    """The product with a time of its own for every network."""
    e1, e2 = flow.learning_rates
    stacked = flow.modes.expand(mode_coordinates(flow.modes, t * flow.clock))
    product = (e1 * e2) ** 0.5 * stacked[..., flow.n_in :, :] @ stacked[..., : flow.n_in, :].mT
    return torch.where((t == 0)[..., None, None], flow.w2 @ flow.w1, product)


def _refine(loss: Callable[[Tensor], Tensor], scan: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Golden-section search between the neighbours of the best point of the scan."""
    best = values.argmin(0, keepdim=True)
    low = scan.gather(0, (best - 1).clamp_min(0))
    high = scan.gather(0, (best + 1).clamp_max(scan.shape[0] - 1))
    ratio = (5**0.5 - 1) / 2
    for _ in range(_REFINE):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        lower_left = loss(left) < loss(right)
        high, low = torch.where(lower_left, right, high), torch.where(lower_left, low, left)
    time = (low + high) / 2
    refined = loss(time)
    scanned = values.gather(0, best)
    better = refined <= scanned
    return torch.where(better, time, scan.gather(0, best))[0], torch.where(better, refined, scanned)[0]


def _first_crossing(gap: Callable[[Tensor], Tensor], scan: Tensor, values: Tensor) -> Tensor:
    """First time at which ``gap`` is no longer negative, by bisection; infinite if it always is."""
    reached = values >= 0
    index = reached.to(torch.int64).argmax(0, keepdim=True)
    high, low = scan.gather(0, index), scan.gather(0, (index - 1).clamp_min(0))
    for _ in range(_REFINE):
        middle = (low + high) / 2
        beyond = gap(middle) >= 0
        high, low = torch.where(beyond, middle, high), torch.where(beyond, low, middle)
    return torch.where(reached.any(0), torch.where(index[0] == 0, 0.0, high[0]), float("inf"))
