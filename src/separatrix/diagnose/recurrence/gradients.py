"""How gradients travel: norms of products of Jacobians, and the adjoint recursion, in logarithms throughout."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Result, spawn

from .jacobians import RunJacobians

_MOST_LAGS = 40


@final
@dataclasses.dataclass(frozen=True, repr=False)
class GradientFlow(Result):
    """Logarithms of norms, which neither overflow nor vanish."""

    product_lags: Int[Tensor, " p"]
    product_log_norms: Float[Tensor, " p"]
    """log of the spectral norm of the product of that many Jacobians, the first sequence, from its middle third on."""
    lags: Int[Tensor, " t"]
    log_norms: Float[Tensor, " t"]
    """Mean over sequences of log |dL/dh| that many steps before the end."""
    steps_to_e: float
    """Steps in which the gradient falls (positive) or grows (negative) by a factor e, fitted on the older half of the
    lags; infinite if it does neither."""
    of_loss: bool
    """Whether direct terms of a loss were given; otherwise L is a random combination of the last state."""


def gradient_flow(
    jacobians: RunJacobians,
    shape: tuple[int, int, int],
    direct: Float[Tensor, "batch t n"] | None,
    seed: int,
) -> GradientFlow:
    """Gradients back through a run: ``lambda_(t-1) = J_t' lambda_t + direct term``, rescaled at every step.

    Args:
        jacobians: of each step.
        shape: sequences, steps, and entries of a state.
        direct: derivative of a loss by each state without the recurrence; by default a random one at the end alone.
        seed: of that.

    Cost: a product of two matrices a step, and about forty spectral norms.
    """
    logs = _adjoint(jacobians, shape, direct, seed)
    lags = torch.arange(len(logs))
    product_lags, product_logs = _products(jacobians, shape)
    return GradientFlow(product_lags, product_logs, lags, logs, _steps_to_e(lags, logs), direct is not None)


def _adjoint(
    jacobians: RunJacobians, shape: tuple[int, int, int], direct: Tensor | None, seed: int
) -> Float[Tensor, " t"]:
    """Mean log norm at lags 0, 1, ...; a vector of length one and the logarithm of its true length are carried."""
    batch, steps, size = shape
    if direct is None:
        vector = torch.randn(batch, size, generator=spawn(seed, "adjoint"), dtype=torch.float64)
    else:
        vector = direct[:batch, -1].double()
    vector, scale = _rescaled(vector, torch.zeros(batch, dtype=torch.float64))
    logs = [scale.mean()]
    for step in range(steps - 1, 0, -1):
        vector = (vector.unsqueeze(1) @ jacobians[step]).squeeze(1)
        if direct is not None:
            vector, scale = _added(vector, scale, direct[:batch, step - 1].double())
        vector, scale = _rescaled(vector, scale)
        logs.append(scale.mean())
    return torch.stack(logs)


def _rescaled(vector: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    length = torch.linalg.vector_norm(vector, dim=-1)
    safe = torch.where(length > 0, length, 1.0)
    return vector / safe.unsqueeze(-1), scale + length.log()


def _added(vector: Tensor, scale: Tensor, term: Tensor) -> tuple[Tensor, Tensor]:
    """exp(scale) vector + term, without leaving logarithms."""
    base = torch.maximum(scale, torch.linalg.vector_norm(term, dim=-1).log()).clamp_min(-1e300)
    total = vector * torch.exp(scale - base).unsqueeze(-1) + term * torch.exp(-base).nan_to_num().unsqueeze(-1)
    return total, base


def _products(jacobians: RunJacobians, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """log norms of products of more and more Jacobians, at lags that thin out."""
    start = shape[1] // 3
    count = shape[1] - start
    thinned = {round(count ** (k / _MOST_LAGS)) for k in range(_MOST_LAGS + 1)}
    wanted = sorted(thinned | set(range(1, min(count, 8) + 1)))
    product = torch.eye(shape[2], dtype=torch.float64)
    scale, logs = 0.0, []
    for lag in range(1, count + 1):
        step = start + lag - 1
        product = jacobians[step][0] @ product
        largest = float(product.abs().max())
        if largest == 0:
            scale = -math.inf
        else:
            product, scale = product / largest, scale + math.log(largest)
        if lag in wanted:
            logs.append(scale + math.log(float(torch.linalg.matrix_norm(product, 2)) or 1.0))
    return torch.tensor(wanted), torch.tensor(logs, dtype=torch.float64)


def _steps_to_e(lags: Tensor, logs: Tensor) -> float:
    """One over minus the slope of a line through the older half."""
    late, values = lags[len(lags) // 2 :].double(), logs[len(logs) // 2 :]
    if len(late) < 2:
        return math.nan
    if not bool(torch.isfinite(values).all()):
        return 0.0
    centred = late - late.mean()
    slope = float((centred * values).sum() / centred.square().sum())
    return -1 / slope if slope else math.inf
