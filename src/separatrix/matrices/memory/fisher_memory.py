r"""Fisher memory: what the state of a linear recurrent network still knows of its past input.

The network is :math:`h_t = W h_{t-1} + v s_t + z_t`, with noise of variance ``noise_var`` per unit and step. About the
signal k steps ago the state holds :math:`J(k) = (W^k v)^\top C^{-1} (W^k v)`, where
:math:`C = W C W^\top + \epsilon I` is the covariance of the noise that has piled up. Its sum over all k is
:math:`v^\top J_s v`; the trace of the spatial matrix :math:`J_s = W^\top J_s W + C^{-1}` is :math:`N/\epsilon` for
every stable W, and that identity is used here as a test of the arithmetic.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core import (
    ConvergenceWarning,
    InvalidInput,
    Result,
    ShapeError,
    as_tensor,
    choose,
    require_integer,
    require_positive,
    require_square,
)
from separatrix.core.arithmetic.eigenvalues import eigvals

from .ball_memory import ball_memory

DOUBLE_BITS = 53
MAX_CONDITION = 1e10
"""Above this condition number of the covariance, double precision is not tried."""
TRACE_TOLERANCE = 1e-9
"""Relative error of the trace identity up to which double precision is believed."""
_MAX_DOUBLINGS = 60


@final
@dataclasses.dataclass(frozen=True, repr=False)
class FisherMemory(Result):
    """Memory of a linear recurrent network; NaN in elements that are not ``trustworthy``."""

    curve: Float[Tensor, "*batch k"]
    """J(k) for k = 0 .. n_steps - 1."""
    total: Float[Tensor, "*batch"]
    """Sum of J(k) over all k, to infinity."""
    spatial_fisher: Float[Tensor, "*batch h h"]
    covariance: Float[Tensor, "*batch h h"]
    condition: Float[Tensor, "*batch"]
    """Upper bound of the condition number of the covariance, its norm over the noise variance."""
    trace_error: Float[Tensor, "*batch"]
    """Relative error of the identity trace = N / noise_var."""
    bits: Int[Tensor, "*batch"]
    """Precision used for each element; 53 is double."""
    trustworthy: Bool[Tensor, "*batch"]
    precision: str
    method: str
    note: str = ""


def fisher_memory_curve(
    recurrent: Float[Tensor, "*batch h h"],
    source: Float[Tensor, "*#batch h"],
    n_steps: int,
    noise_var: float = 1.0,
    precision: Literal["auto", "double"] | int = "auto",
) -> FisherMemory:
    r"""Fisher memory curve, its infinite sum and the spatial Fisher matrix, in as many digits as it takes.

    .. math:: J(k) = (W^k v)^\top C^{-1} (W^k v), \qquad C = \epsilon\sum_k W^k W^{k\top}

    Args:
        recurrent: stable matrices W (spectral radius below 1).
        source: direction v by which the signal enters; scaled to length 1, with a note, if it is not.
        n_steps: length of the curve.
        noise_var: variance of the noise per unit and step.
        precision: ``"double"``; a number of bits (at least 53) for ball arithmetic; or ``"auto"``, which takes double
            where the covariance is well conditioned and the trace identity holds to 1e-9, and otherwise ball
            arithmetic with as many bits as bring every value to 12 digits.

    Returns:
        Curve, total, matrices, and the precision of every element. Where the precision asked for is not enough,
        values are NaN, ``trustworthy`` is False and a ``ConvergenceWarning`` is given.

    Raises:
        InvalidInput: W is not stable (the message has the spectral radius), the source is zero, the noise variance is
            not positive, or the bits given are too few.

    Source:
        kerg2022, section 2.6 and Eq. (A.2.2).

    Cost: about 20 products of n x n matrices. In ball arithmetic one matrix of size 100 takes one to three seconds
    at 256 bits, and a batch is worked off one by one.

    Example:
        >>> line = torch.diag(torch.ones(9, dtype=torch.float64), -1)
        >>> memory = fisher_memory_curve(line, torch.eye(10, dtype=torch.float64)[0], 4)
        >>> [round(value, 4) for value in memory.curve.tolist()]
        [1.0, 0.5, 0.3333, 0.25]
    """
    recurrent, source, note = _checked(recurrent, source, noise_var)
    n_steps = require_integer(n_steps, "n_steps", at_least=1)
    _require_precision(precision)
    _require_stable(recurrent)
    batch, size = recurrent.shape[:-2], recurrent.shape[-1]
    wide = recurrent.detach().reshape(-1, size, size).to(torch.float64)
    entry = source.detach().expand(*batch, size).reshape(-1, size).to(torch.float64)
    fields = _in_double(wide, entry, n_steps, noise_var)
    if isinstance(precision, int):
        fields["trustworthy"] = torch.zeros_like(fields["trustworthy"])
    if precision != "double":
        _repair_in_balls(fields, wide, entry, noise_var, precision)
    _blank_and_warn(fields)
    shaped = {name: value.reshape((*batch, *value.shape[1:])) for name, value in fields.items()}
    kept = {name: _like(value, recurrent) for name, value in shaped.items()}
    return FisherMemory(**kept, precision=_precision_words(fields["bits"]), method=_method(fields["bits"]), note=note)


def _in_double(recurrent: Tensor, source: Tensor, n_steps: int, noise_var: float) -> dict[str, Tensor]:
    """The double route for a flat batch; Cholesky factors keep every J(k) above zero."""
    size = recurrent.shape[-1]
    identity = torch.eye(size, dtype=torch.float64, device=recurrent.device).expand_as(recurrent)
    covariance = _doubling(identity, recurrent, adjoint=False)
    factor, info = torch.linalg.cholesky_ex((covariance + covariance.mT) / 2)
    inverse = torch.cholesky_inverse(factor)
    spatial = _doubling(inverse, recurrent, adjoint=True)
    whitened = torch.linalg.solve_triangular(factor, signals(recurrent, source, n_steps), upper=False)
    trace_error = (torch.diagonal(spatial, dim1=-2, dim2=-1).sum(-1) / size - 1).abs()
    condition = torch.linalg.matrix_norm(covariance, 2)
    trustworthy = (info == 0) & (condition < MAX_CONDITION) & (trace_error < TRACE_TOLERANCE)
    return {
        "curve": whitened.square().sum(-2) / noise_var,
        "total": (source[..., None, :] @ spatial @ source[..., :, None])[..., 0, 0] / noise_var,
        "spatial_fisher": spatial / noise_var,
        "covariance": covariance * noise_var,
        "condition": condition,
        "trace_error": trace_error,
        "bits": torch.full_like(info, DOUBLE_BITS, dtype=torch.int64),
        "trustworthy": trustworthy,
    }


def _doubling(seed: Tensor, matrix: Tensor, *, adjoint: bool) -> Tensor:
    """sum_k M^k S M^kT (or M^kT S M^k); each pass doubles the number of terms."""
    total, power = seed, matrix
    for _ in range(_MAX_DOUBLINGS):
        left = power.mT if adjoint else power
        step = left @ total @ left.mT
        total = total + step
        grows = step.abs().amax((-2, -1)) > 1e-18 * total.abs().amax((-2, -1))
        if not bool((grows & torch.isfinite(total).all(-1).all(-1)).any()):
            break
        power = power @ power
    return total


def signals(recurrent: Tensor, source: Tensor, n_steps: int) -> Tensor:
    """W^k v as columns."""
    columns, state = [], source[..., None]
    for _ in range(n_steps):
        columns.append(state)
        state = recurrent @ state
    return torch.cat(columns, dim=-1)


def _repair_in_balls(
    fields: dict[str, Tensor], recurrent: Tensor, source: Tensor, noise_var: float, precision: str | int
) -> None:
    """Replace every element that double precision could not settle."""
    for index in torch.nonzero(~fields["trustworthy"])[:, 0].tolist():
        adapt = not isinstance(precision, int)
        bits = _first_guess(float(fields["condition"][index])) if adapt else int(precision)
        matrix, entry = recurrent[index].cpu().numpy(), source[index].cpu().numpy()
        found = ball_memory(matrix, entry, fields["curve"].shape[-1], noise_var, bits, adapt=adapt)
        for name in ("curve", "spatial_fisher", "covariance", "total", "bits"):
            fields[name][index] = torch.as_tensor(getattr(found, name), dtype=fields[name].dtype)
        fields["trace_error"][index] = abs(found.trace * noise_var / len(matrix) - 1)
        fields["trustworthy"][index] = found.is_sharp


def _first_guess(condition: float) -> int:
    """Bits to start with: the square of the condition number enters, and 12 digits are to be left."""
    lost = 2 * math.log2(condition) if math.isfinite(condition) else 512.0
    return 64 * math.ceil((lost + 96) / 64)


def _blank_and_warn(fields: dict[str, Tensor]) -> None:
    failed = ~fields["trustworthy"]
    if not bool(failed.any()):
        return
    for name in ("curve", "total", "spatial_fisher"):
        fields[name][failed] = math.nan
    worst = float(fields["condition"].max())
    warnings.warn(
        f"{_precision_words(fields['bits'])} cannot settle {int(failed.sum())} of {len(failed)} Fisher memories "
        f"(condition of the covariance up to {worst:.1e}); they are NaN. Use precision='auto'.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _checked(recurrent: Tensor, source: Tensor, noise_var: float) -> tuple[Tensor, Tensor, str]:
    recurrent, source = as_tensor(recurrent, "recurrent"), as_tensor(source, "source")
    require_square(recurrent, "recurrent")
    require_positive(noise_var, "noise_var")
    if source.ndim < 1 or source.shape[-1] != recurrent.shape[-1]:
        raise ShapeError(
            f"source must have one entry per unit ({recurrent.shape[-1]}); got shape {tuple(source.shape)}."
        )
    length = torch.linalg.vector_norm(source.to(torch.float64), dim=-1, keepdim=True)
    if not bool((length > 0).all()):
        raise InvalidInput("source must not be zero; give the direction by which the signal enters.")
    unit = bool(((length - 1).abs() <= 4 * torch.finfo(source.dtype).eps).all())
    note = "" if unit else f"source had length {float(length.max()):.6g} and was scaled to 1"
    return recurrent, source if unit else source.to(torch.float64) / length, note


def _require_precision(precision: object) -> None:
    if isinstance(precision, int):
        require_integer(precision, "precision", at_least=DOUBLE_BITS)
    else:
        choose("precision", precision, ("auto", "double"), also="a number of bits")


def _require_stable(recurrent: Tensor) -> None:
    """Refuse a spectral radius of 1 or more; a triangular matrix shows its eigenvalues without rounding."""
    wide = recurrent.detach().to(torch.float64)
    diagonal = torch.diagonal(wide, dim1=-2, dim2=-1).abs().amax(-1)
    triangular = (wide.triu(1) == 0).all(-1).all(-1) | (wide.tril(-1) == 0).all(-1).all(-1)
    computed = eigvals(wide).abs().amax(-1)
    radius = float(torch.where(triangular, diagonal, computed).amax()) if wide.numel() else 0.0
    if radius >= 1:
        raise InvalidInput(
            f"recurrent must be stable for a Fisher memory to exist; its spectral radius is {radius:.6g}. "
            f"Multiply it by {0.99 / radius:.4g} or less."
        )


def _like(value: Tensor, recurrent: Tensor) -> Tensor:
    return value.to(recurrent.dtype) if value.is_floating_point() else value


def _precision_words(bits: Tensor) -> str:
    names = ["double" if count == DOUBLE_BITS else f"{count} bits" for count in sorted(set(bits.tolist()))]
    return " and ".join(names)


def _method(bits: Tensor) -> str:
    balls = bool((bits != DOUBLE_BITS).any())
    return "doubling in ball arithmetic" if balls else "doubling in double precision"
