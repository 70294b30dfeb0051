"""Modes of a balanced two-layer network: the task and the initial weights in the coordinates where learning separates.

With white inputs and balance ``lam`` the stacked weights ``Q = [w1'; w2]`` obey ``tau Q' = F Q - Q Q' Q / 2`` with
``F = [[-lam/2, S'], [S, lam/2]]`` and ``S`` the input-output correlation. The eigenvectors of F are known in closed
form from the singular vectors of S; this file writes Q(0) in them. No size has to be equal, S may be singular,
``lam`` may be zero and there may be fewer hidden units than modes.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import formula

from .row_echelon import row_echelon


@final
@dataclasses.dataclass(frozen=True)
class BalancedModes:
    """Initial weights in the eigenvectors of F, growth rates descending, the hidden basis chosen so that L is lower.

    Rows are ordered: growing modes (r), directions of the larger side outside the task (m0), decaying modes reversed
    (r).
    """

    task_u: Float[Tensor, "*batch o r"]
    task_v: Float[Tensor, "*batch i r"]
    task_s: Float[Tensor, "*batch r"]
    mix_in: Float[Tensor, "*batch r"]
    """Weight of the input singular vector in a growing mode (and, negated, of the output one in a decaying mode)."""
    mix_out: Float[Tensor, "*batch r"]
    outside: Float[Tensor, "*batch io m0"]
    """Directions of the input or output space outside the task that the initial weights touch, stacked like Q."""
    rates: Float[Tensor, "*batch m"]
    gaps: Float[Tensor, "*batch m1 m1"]
    """Differences of rates without cancellation; the last row and column belong to the constant 1 (rate zero)."""
    lower: Float[Tensor, "*batch m k"]
    rotation: Float[Tensor, "*batch h k"]
    """Orthonormal hidden basis with ``Q(0) = modes @ lower @ rotation'``."""

    @property
    def batch(self) -> torch.Size:
        """Shape of the batch of networks."""
        return self.rates.shape[:-1]

    def expand(self, coordinates: Float[Tensor, "*any m k"]) -> Float[Tensor, "*any io k"]:
        """Stacked weights from their coordinates in the modes, without forming the eigenvectors."""
        r = self.task_s.shape[-1]
        m0 = self.outside.shape[-1]
        grow, decay = coordinates[..., :r, :], coordinates[..., r + m0 :, :].flip(-2)
        mix_in, mix_out = self.mix_in[..., None], self.mix_out[..., None]
        upper = self.task_v @ (mix_in * grow + mix_out * decay)
        lower = self.task_u @ (mix_out * grow - mix_in * decay)
        stacked = torch.cat([upper, lower], dim=-2)
        return stacked + self.outside @ coordinates[..., r : r + m0, :] if m0 else stacked


def decompose(
    w1: Float[Tensor, "*batch h i"],
    w2: Float[Tensor, "*batch o h"],
    corr_yx: Float[Tensor, "*batch o i"],
    balance: Float[Tensor, "*batch"],
    saddle_tol: float = 0.0,
) -> BalancedModes:
    """Write balanced initial weights in the modes of the task. Cost: one thin SVD and two QR decompositions."""
    u, s, vh = torch.linalg.svd(corr_yx, full_matrices=False)
    v = vh.mT
    mu, mix_in, mix_out = mode_rates(s, balance)
    along_v, along_u = v.mT @ w1.mT, u.mT @ w2
    grow = mix_in[..., None] * along_v + mix_out[..., None] * along_u
    decay = mix_out[..., None] * along_v - mix_in[..., None] * along_u
    outside, outside_rows, outside_rate = _outside_task(w1, w2, u, v, balance)
    rows = torch.cat([grow, outside_rows, decay.flip(-2)], dim=-2)
    rates = torch.cat([mu, outside_rate, -mu.flip(-1)], dim=-1)
    lower, rotation = row_echelon(rows, saddle_tol)
    s_rows = torch.cat([s, torch.zeros_like(outside_rate), s.flip(-1)], dim=-1)
    return BalancedModes(u, v, s, mix_in, mix_out, outside, rates, _rate_gaps(rates, s_rows), lower, rotation)


@formula("anguita2024", "Theorem 3.3.1, item 2, Eqs. (3.49)-(3.53)", erratum="anguita2024-3.49")
def mode_rates(
    task_s: Float[Tensor, "*batch r"], balance: Float[Tensor, "*batch"]
) -> tuple[Float[Tensor, "*batch r"], Float[Tensor, "*batch r"], Float[Tensor, "*batch r"]]:
    r"""Positive eigenvalues of F and the mixing of its eigenvectors, without cancellation for any balance.

    .. math:: \mu = \sqrt{s^2 + \lambda^2/4}, \quad o_+ = (a\,v;\; b\,u), \quad o_- = (b\,v;\; -a\,u), \quad
        \tan 2\theta = 2s/|\lambda|

    with ``(a, b) = (sin, cos) theta`` for a balance of at least zero and exchanged below.

    Returns:
        ``(mu, a, b)``.
    """
    lam = balance[..., None]
    mu = torch.hypot(task_s, lam / 2)
    angle = torch.atan2(2 * task_s, lam.abs().expand_as(task_s)) / 2
    sine, cosine = torch.sin(angle), torch.cos(angle)
    return mu, torch.where(lam >= 0, sine, cosine), torch.where(lam >= 0, cosine, sine)


def _outside_task(w1: Tensor, w2: Tensor, u: Tensor, v: Tensor, balance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Directions outside the task's singular vectors: where they point, the weights along them, their rate.

    Only the larger of the two spaces has any. QR of [basis | weights] yields an orthonormal set outside the basis that
    holds every weight there, so the whole complement is never formed, and rank-deficient weights need no care.
    """
    n_in, n_out, r = v.shape[-2], u.shape[-2], u.shape[-1]
    basis, weights, rate = (v, w1.mT, -balance / 2) if n_in > n_out else (u, w2, balance / 2)
    triangular = torch.linalg.qr(torch.cat([basis, weights], dim=-1))
    directions, rows = triangular.Q[..., r:], triangular.R[..., r:, r:]
    # not by pad, which torch 2.6 refuses where there are no directions
    zeros = directions.new_zeros(*directions.shape[:-2], n_out if n_in > n_out else n_in, directions.shape[-1])
    padded = torch.cat([directions, zeros] if n_in > n_out else [zeros, directions], dim=-2)
    return padded, rows, rate[..., None].expand(*balance.shape, rows.shape[-2])


def _rate_gaps(rates: Tensor, s: Tensor) -> Tensor:
    """``rates_i - rates_j`` with a last row and column for rate zero.

    Rates of one sign differ by ``(s_i - s_j)(s_i + s_j) / (|rate_i| + |rate_j|)``: subtracting the rates themselves
    would lose all digits at large balance. Singular values that agree to rounding count as equal.
    """
    rates = torch.nn.functional.pad(rates, (0, 1))
    s = torch.nn.functional.pad(s, (0, 1))
    row, column = rates[..., :, None], rates[..., None, :]
    difference = s[..., :, None] - s[..., None, :]
    rounding = 4 * torch.finfo(s.dtype).eps * s.amax(-1)[..., None, None]
    difference = torch.where(difference.abs() <= rounding, 0.0, difference)
    total = row.abs() + column.abs()
    close = difference * (s[..., :, None] + s[..., None, :]) / total.clamp_min(torch.finfo(s.dtype).tiny)
    return torch.where(row * column > 0, torch.sign(row) * close, row - column)
