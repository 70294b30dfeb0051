"""Optimisers, learning rates and gradient clipping: small functions the loop calls by name."""

from __future__ import annotations

import fnmatch
import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput

from .settings import TrainingSettings


def make_optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """The optimiser the settings name, over all parameters of the model, with the groups of the settings.

    Raises:
        InvalidInput: a group whose pattern fits no parameter that is left for it.
    """
    assert settings.beta1 is not None  # settled by the settings, as is the next
    assert settings.beta2 is not None
    groups = parameter_groups(model, settings)
    if settings.optimiser == "adam":
        return torch.optim.Adam(groups, lr=settings.lr, betas=(settings.beta1, settings.beta2))
    if settings.optimiser == "rmsprop":
        return torch.optim.RMSprop(groups, lr=settings.lr, alpha=settings.beta2, momentum=settings.beta1)
    return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.beta1)


def parameter_groups(model: nn.Module, settings: TrainingSettings) -> list[dict[str, Any]]:
    """The parameters of the model in the groups of the settings, then those that no group asks for."""
    left = dict(model.named_parameters())
    found = []
    for group in settings.groups:
        names = fnmatch.filter(left, group.names)
        if not names:
            known = ", ".join(sorted(left)) or "none"
            raise InvalidInput(f"no parameter is named like {group.names!r}; left for this group: {known}.")
        rate = settings.lr if group.lr is None else group.lr
        members = [left.pop(name) for name in names]
        found.append({"params": members, "lr": rate, "weight_decay": group.weight_decay})
    return [*found, {"params": list(left.values())}] if left else found


def warmup_cosine(step: int, n_steps: int, warmup_steps: int) -> float:
    r"""Fraction of the peak learning rate: a linear rise, then half a cosine down to zero at ``n_steps``.

    .. math:: \frac{k+1}{m} \; (k < m), \qquad \tfrac12\Bigl(1 + \cos \pi \frac{k-m}{n-m}\Bigr) \; (k \ge m)

    Example:
        >>> [round(warmup_cosine(step, 6, 2), 3) for step in range(6)]
        [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if step >= n_steps:
        return 0.0
    return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / (n_steps - warmup_steps)))


def rate_factor(step: int, settings: TrainingSettings) -> float:
    """Fraction of the peak learning rate at a step."""
    if settings.schedule == "cosine":
        return warmup_cosine(step, settings.n_steps, settings.warmup_steps)
    return min(1.0, (step + 1) / settings.warmup_steps) if settings.warmup_steps else 1.0


def clip_gradients(
    parameters: list[nn.Parameter], max_norm: float | None, *, n_members: int | None = None
) -> Float[Tensor, " members"]:
    """Scale gradients down to a norm of ``max_norm``, each member's on its own; returns the norms before.

    Args:
        parameters: with a leading axis of members when ``n_members`` is given.
        max_norm: ``None`` only measures.
        n_members: number of models trained side by side; ``None`` for an ordinary model, whose norms have one entry.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    rows = 1 if n_members is None else n_members
    squares = [gradient.reshape(rows, -1).square().sum(1) for gradient in gradients]
    norms = torch.stack(squares).sum(0).sqrt() if squares else torch.zeros(rows)
    if max_norm is not None:
        factors = (max_norm / norms).clamp_max(1.0).nan_to_num(1.0)  # a zero gradient stays as it is
        for gradient in gradients:
            gradient.mul_(factors.reshape(-1, *[1] * (gradient.ndim - 1)) if n_members is not None else factors[0])
    return norms
