"""The exact state of a balanced network at any time, as a factor of its Gram matrix; nothing overflows.

In the modes of ``balanced_modes`` the solution of the matrix Riccati equation is
``Q Q' = E L (1 + L' Phi L)^-1 L' E`` with ``E = exp(rates t)`` and ``Phi = int exp(2 rates s) ds``. Evaluated as
written it overflows and cancels. Here each hidden column is divided by its largest entry, exponents appear only as
differences of rates, and the inverse is taken by QR: the error is a few units of rounding at every time.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from separatrix.core import formula

from .balanced_modes import BalancedModes

LATEST = 1e150
"""Times beyond this one (in units of tau) are replaced by it: by then only terms below 1e-150 still move."""

_CHUNK_BYTES = 32 * 2**20


def time_chunks(modes: BalancedModes, n_times: int) -> Iterator[slice]:
    """Slices of times whose working arrays stay near 32 MB each."""
    size = max(1, _CHUNK_BYTES // (8 * max(1, modes.lower.numel())))
    for start in range(0, n_times, size):
        yield slice(start, min(start + size, n_times))


@formula("separatrix", "exact solution of the balanced Riccati equation, any sizes")
def mode_coordinates(modes: BalancedModes, t: Float[Tensor, " times *any"]) -> Float[Tensor, "times *batch m k"]:
    """Coordinates G(t) of the stacked weights in the modes: ``Q Q' = O G G' O'``, times in units of tau.

    Times are (times,), the same for every network of the batch, or (times, *batch).

    G is fixed up to a rotation of the hidden basis (``balanced_rotation`` finds it). Cost per time and network:
    one QR of an (m + k, k) matrix, m <= 2 r + k rows, k <= n_hidden.
    """
    alike = t.ndim == 1
    time = t.clamp_max(LATEST).reshape(*t.shape, *(1,) * (len(modes.batch) if alike else 0), 1, 1)
    log_size = _log_size(modes.lower)
    pivot, pivot_log, pivot_rate = _pivots(modes, log_size, time)
    sign, relative = torch.sign(modes.lower), log_size - pivot_log
    grown = sign * torch.exp(_gaps_to(modes, pivot) * time + relative)
    frozen = sign * torch.exp(relative - pivot_rate * time)
    start = torch.exp(-pivot_rate * time - pivot_log)
    rates = modes.rates[..., None]
    # at time zero the root has no slope
    memory = _integral(rates.abs(), time).clamp_min(torch.finfo(rates.dtype).tiny).sqrt()
    return _normalised(memory, torch.where(rates > 0, grown, frozen), start, grown, rates, time)


def _log_size(lower: Tensor) -> Tensor:
    """log |lower|, minus infinity at zero; there its derivative is zero: the slope of log would be 0 times infinity."""
    empty = lower == 0
    return torch.where(empty, -torch.inf, torch.where(empty, 1.0, lower).abs().log())


def _pivots(modes: BalancedModes, log_size: Tensor, time: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The row that dominates each hidden column at each time: its index, log size and rate (times, *batch, 1, k).

    The last index stands for the constant 1 of the identity matrix, which dominates as long as nothing has grown.
    """
    log_size = torch.nn.functional.pad(log_size, (0, 0, 0, 1))
    rates = torch.nn.functional.pad(modes.rates, (0, 1))[..., None]
    pivot: Int64[Tensor, "times *batch 1 k"] = (rates * time + log_size).argmax(dim=-2, keepdim=True)
    wide = (pivot.shape[0], *log_size.shape)
    return pivot, log_size.expand(wide).gather(-2, pivot), rates.expand(wide).gather(-2, pivot)


def _gaps_to(modes: BalancedModes, pivot: Tensor) -> Tensor:
    """Rate of each row minus the rate of the pivot of each column (times, *batch, m, k)."""
    m, k = modes.lower.shape[-2:]
    table = modes.gaps[..., :m, :].expand(pivot.shape[0], *modes.batch, m, m + 1)
    return table.gather(-1, pivot.expand(*pivot.shape[:-2], m, k))


def _integral(rate: Tensor, time: Tensor) -> Tensor:
    """``int_0^t exp(-2 rate s) ds`` for rates of at least zero."""
    x = 2 * rate * time
    safe = rate.clamp_min(torch.finfo(rate.dtype).tiny)
    return torch.where(x < 1e-8, time * (1 - x / 2), -torch.expm1(-x) / (2 * safe))


def _normalised(memory: Tensor, rows: Tensor, start: Tensor, grown: Tensor, rates: Tensor, time: Tensor) -> Tensor:
    """``grown @ R^-1`` where R is the triangular factor of ``[memory * rows; diag(start)]``.

    While the start term matters in every column, R is well conditioned and the triangular solve is accurate. Later two
    columns may be nearly parallel; but a row of the orthonormal factor is one of ``memory * rows @ R^-1``, so the
    coordinates of every mode whose integral is not small are read from there, which is accurate still.
    """
    identity = torch.diag_embed(start.squeeze(-2))
    both = torch.cat([memory * rows, identity], dim=-2)
    norm = torch.linalg.vector_norm(both, dim=-2, keepdim=True)
    orthonormal, triangular = torch.linalg.qr(both / norm)
    solved = torch.linalg.solve_triangular(triangular, grown / norm, upper=True, left=False)
    decay = torch.where(rates > 0, 1.0, torch.exp(rates.clamp_max(0.0) * time))
    smallest = torch.finfo(memory.dtype).tiny
    read = orthonormal[..., : rows.shape[-2], :] * (decay / memory.clamp_min(smallest))
    started = (start / norm).amin(-1, keepdim=True) < 0.01
    settled = 2 * rates.abs().amax(-2, keepdim=True) * memory.square() > 0.5
    return torch.where(started & settled, read, solved)
