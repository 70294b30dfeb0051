"""Lower echelon form of a matrix by a rotation from the right, row by row, each row with its own relative accuracy.

The order of the rows matters: in a balanced network they are modes, fastest first, and the first row of a column is
the mode that column ends in. A row that depends on those before it (to rounding) may not open a column of its own.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_ROUNDING = 16


def row_echelon(
    rows: Float[Tensor, "*batch m h"], zero_below: float = 0.0
) -> tuple[Float[Tensor, "*batch m k"], Float[Tensor, "*batch h k"]]:
    """``rows = lower @ rotation'`` with orthonormal ``rotation`` and ``lower`` in lower echelon form, k = min(m, h).

    Args:
        rows: the matrix.
        zero_below: what is left of a row after those before it counts as zero if at most this times ``|rows|_F``.
    """
    rotation, upper = torch.linalg.qr(rows.mT)
    lower = upper.mT.contiguous()
    size = torch.linalg.vector_norm(rows, dim=-1)
    tol = torch.maximum(
        _ROUNDING * torch.finfo(rows.dtype).eps * size,
        (zero_below * torch.linalg.matrix_norm(rows))[..., None],
    )
    k = lower.shape[-1]
    opens = lower.diagonal(dim1=-2, dim2=-1).abs() > tol[..., :k]
    broken: Bool[Tensor, "*batch"] = ~opens.all(-1)
    if bool(broken.any()):  # rare: only these elements need the slow path
        fixed_lower, fixed_rotation = _reduce(lower[broken], rotation[broken], tol[broken])
        lower = lower.masked_scatter(broken[..., None, None], fixed_lower)
        rotation = rotation.masked_scatter(broken[..., None, None], fixed_rotation)
    return lower, rotation.contiguous()


def _reduce(lower: Tensor, rotation: Tensor, tol: Tensor) -> tuple[Tensor, Tensor]:
    """Householder reflections, a column opened only by a row that needs one; a batch (n, m, k)."""
    n_rows, k = lower.shape[-2:]
    lower, rotation = lower.clone(), rotation.clone()
    column = torch.arange(k, device=lower.device)
    used = torch.zeros(lower.shape[0], dtype=torch.long, device=lower.device)
    for i in range(n_rows):
        free = column >= used[:, None]
        rest = torch.where(free, lower[:, i], 0.0)
        norm = torch.linalg.vector_norm(rest, dim=-1)
        opens = (norm > tol[:, i]) & (used < k)
        here = (column == used[:, None]) & opens[:, None]
        head = (rest * here).sum(-1)
        sign = torch.where(head < 0, -1.0, 1.0).to(rest.dtype)
        mirror = rest + here * (sign * norm)[:, None]
        weight = torch.where(opens, 2 / mirror.square().sum(-1).clamp_min(torch.finfo(rest.dtype).tiny), 0.0)
        lower = lower - weight[:, None, None] * (lower @ mirror[..., None]) * mirror[:, None, :]
        rotation = rotation - weight[:, None, None] * (rotation @ mirror[..., None]) * mirror[:, None, :]
        lower[:, i] = torch.where(free & ~here, 0.0, lower[:, i])
        used = used + opens
    return lower, rotation
