"""Eigenvalues that are found also where the library's iteration stalls."""

from __future__ import annotations

import torch
from jaxtyping import Complex, Shaped
from torch import Tensor

from separatrix.core import as_tensor, require_square

ATTEMPTS = 6


def robust_eigenvalues(matrix: Shaped[Tensor, "*batch n n"]) -> Complex[Tensor, "*batch n"]:
    """Eigenvalues of square matrices, retried in other orthogonal bases if the iteration fails.

    The QR iteration behind ``torch.linalg.eigvals`` gives up on a few matrices in a million, typically ones with an
    eigenvalue repeated many times; a reflection of the basis changes rounding and leaves eigenvalues as they are.

    Cost: that of ``torch.linalg.eigvals``, except after a failure.
    """
    matrix = as_tensor(matrix, "matrix", allow_complex=True, half=False)  # beneath, NaN may end the process
    require_square(matrix, "matrix")
    for attempt in range(1, ATTEMPTS):
        try:
            return torch.linalg.eigvals(matrix)
        except torch.linalg.LinAlgError:
            matrix = _reflected(matrix, attempt)
    return torch.linalg.eigvals(matrix)


def _reflected(matrix: Tensor, attempt: int) -> Tensor:
    size = matrix.shape[-1]
    mirror = torch.arange(attempt, attempt + size, dtype=torch.float64, device=matrix.device).sqrt()
    identity = torch.eye(size, dtype=torch.float64, device=matrix.device)
    reflection = (identity - 2 * torch.outer(mirror, mirror) / mirror.dot(mirror)).to(matrix.dtype)
    return reflection @ matrix @ reflection
