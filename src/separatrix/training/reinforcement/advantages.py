"""How much better an action was than expected."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.scalars import is_number


def require_share(value: Any, name: str) -> None:
    """A number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number in [0, 1]; got {value!r}.")


def advantages(
    rewards: Float[Tensor, "t batch"],
    values: Float[Tensor, "t batch"],
    ends: Bool[Tensor, "t batch"],
    last_value: Float[Tensor, " batch"],
    discount: float = 0.99,
    decay: float = 0.95,
) -> Float[Tensor, "t batch"]:
    r"""Generalised advantages :math:`\hat A_t = \sum_{l\ge 0}(\gamma\lambda)^l\delta_{t+l}` within an episode, with
    :math:`\delta_t = r_t + \gamma V(s_{t+1}) - V(s_t)`.

    Args:
        rewards: of each step.
        values: expected from each state on.
        ends: whether the episode ended with this step; nothing of the next one counts.
        last_value: of the state after the last step.
        discount: gamma, in [0, 1].
        decay: lambda, in [0, 1]: 0 for one step and the expected value, 1 for all rewards there were.

    Source: Schulman et al. 2016, arXiv 1506.02438, Eq. (16).

    Cost: one pass.

    Example:
        >>> rewards, values = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5], [0.5]])
        >>> ends, last = torch.tensor([[False], [True]]), torch.tensor([7.0])
        >>> advantages(rewards, values, ends, last, 1.0, 1.0).squeeze(1)
        tensor([0.5000, 0.5000])
    """
    if rewards.shape != values.shape or rewards.shape != ends.shape or last_value.shape != rewards.shape[1:]:
        raise ShapeError(
            f"rewards, values and ends must be (t, batch) and last_value (batch,); got {tuple(rewards.shape)}, "
            f"{tuple(values.shape)}, {tuple(ends.shape)} and {tuple(last_value.shape)}."
        )
    require_share(discount, "discount")
    require_share(decay, "decay")
    found = torch.zeros_like(rewards)
    running, following = torch.zeros_like(last_value), last_value
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = (~ends[t]).to(rewards.dtype)
        surprise = rewards[t] + discount * following * goes_on - values[t]
        running = surprise + discount * decay * goes_on * running
        found[t], following = running, values[t]
    return found
