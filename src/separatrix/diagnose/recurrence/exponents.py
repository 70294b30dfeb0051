"""Lyapunov exponents of a recurrent network along a run, with errors, by repeated orthogonalisation."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Result, spawn
from separatrix.core.arithmetic.linear_systems import logabsdet

from .jacobians import RunJacobians

_RESAMPLES = 200


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LyapunovSpectrum(Result):
    """Exponents per step, falling; what grows by e^exponent a step."""

    exponents: Float[Tensor, " k"]
    """Minus infinity for directions that a singular Jacobian extinguishes."""
    standard_errors: Float[Tensor, " k"]
    """By resampling blocks of steps over time and sequences; NaN where the run is too short for two blocks."""
    n_extinguished: int
    """Exponents that are minus infinity."""
    dimension: float | None
    """Kaplan and Yorke's; None unless an exponent is positive and all are known."""
    sum_error: float | None
    """Relative difference between the sum of all exponents and the mean log |det J|, computed apart: about the
    rounding times the condition number of a Jacobian. None if one is singular or only some exponents are computed."""
    n_steps: int
    """Steps averaged over, all sequences together."""
    warm_up: int


def lyapunov_spectrum(
    jacobians: RunJacobians,
    shape: tuple[int, int, int],
    n_exponents: int,
    warm_up: int,
    seed: int,
) -> LyapunovSpectrum:
    """Benettin's method: tangent vectors are moved by the Jacobian and orthogonalised at every step.

    Args:
        jacobians: of each step.
        shape: sequences, steps, and entries of a state.
        n_exponents: how many are wanted.
        warm_up: steps left out at the beginning.
        seed: of the first tangent vectors and of the resampling.

    Cost: a Jacobian and a QR decomposition of (n, k) per step and sequence; a determinant more if k = n.
    """
    batch, steps, size = shape
    first = torch.randn(batch, size, n_exponents, generator=spawn(seed, "lyapunov"), dtype=torch.float64)
    frame = torch.linalg.qr(first).Q
    logs, dets = [], []
    for step in range(steps):
        jacobian = jacobians[step]
        frame, triangle = torch.linalg.qr(jacobian @ frame)
        if step >= warm_up:
            logs.append(_log_diagonal(triangle, jacobian))
            dets.append(logabsdet(jacobian) if n_exponents == size else None)
    rates = torch.stack(logs, dim=1)
    exponents = rates.mean((0, 1))
    order = exponents.argsort(descending=True)
    return LyapunovSpectrum(
        exponents=exponents[order],
        standard_errors=_bootstrap(rates, seed)[order],
        n_extinguished=int(torch.isneginf(exponents).sum()),
        dimension=_kaplan_yorke(exponents[order]) if n_exponents == size else None,
        sum_error=_sum_error(exponents, dets),
        n_steps=rates.shape[0] * rates.shape[1],
        warm_up=warm_up,
    )


def product_exponents(factors: Float[Tensor, "t n n"], seed: int = 0) -> Float[Tensor, " n"]:
    """Exponents per step of the product of given matrices, the first applied first; falling.

    Cost: a QR decomposition per factor.
    """
    size = factors.shape[-1]
    frame = torch.linalg.qr(torch.randn(size, size, generator=spawn(seed, "products"), dtype=torch.float64)).Q
    total = torch.zeros(size, dtype=torch.float64)
    for factor in factors.double():
        frame, triangle = torch.linalg.qr(factor @ frame)
        total = total + _log_diagonal(triangle[None], factor[None])[0]
    return (total / len(factors)).sort(descending=True).values


def _log_diagonal(triangle: Tensor, jacobian: Tensor) -> Tensor:
    """log |diagonal|; minus infinity where it is zero to rounding, as behind a unit that is switched off."""
    diagonal = triangle.diagonal(dim1=-2, dim2=-1).abs()
    scale = torch.linalg.matrix_norm(jacobian).unsqueeze(-1)
    gone = diagonal <= 4 * torch.finfo(torch.float64).eps * scale
    return torch.where(gone, -math.inf, diagonal.log())


def _bootstrap(rates: Float[Tensor, "batch t k"], seed: int) -> Float[Tensor, " k"]:
    """Standard error of the mean from means of blocks of about the square root of the length."""
    batch, steps, _ = rates.shape
    length = max(1, math.isqrt(steps))
    count = steps // length
    if batch * count < 2:
        return torch.full_like(rates[0, 0], math.nan)
    means = rates[:, : count * length].unflatten(1, (count, length)).mean(2).flatten(0, 1)
    picks = torch.randint(len(means), (_RESAMPLES, len(means)), generator=spawn(seed, "bootstrap"))
    errors = means[picks].mean(1).std(0)
    return torch.where(torch.isneginf(rates.mean((0, 1))), 0.0, errors)


def _sum_error(exponents: Tensor, dets: list[Any]) -> float | None:
    if dets[0] is None or bool(torch.isneginf(exponents).any()):
        return None
    expected = float(torch.stack(dets).mean())
    return abs(float(exponents.sum()) - expected) / max(abs(expected), 1e-300)


def _kaplan_yorke(exponents: Tensor) -> float | None:
    """j + (sum of the first j) / |next|, j the most exponents whose sum is not negative."""
    sums = exponents.cumsum(0)
    count = int((sums >= 0).sum())
    if float(exponents[0]) <= 0:
        return None
    if count == len(exponents):
        return float(count)
    following = abs(float(exponents[count]))
    return count + (float(sums[count - 1]) / following if math.isfinite(following) else 0.0)
