"""Exact eigenvalue samplers that never build the dense matrix, or build it once for every scale."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import require_integer

from .base import haar_orthogonal, normal_entries


def goe_eigenvalues(width: int, *, generator: torch.Generator) -> Float[Tensor, " n"]:
    """Eigenvalues of one unit GOE matrix, ascending, from its tridiagonal model.

    Householder reduction turns (A + A^T) / sqrt(2 n) into a tridiagonal matrix with N(0, 2 / n) on the diagonal and
    chi-distributed neighbours (n - 1, n - 2, ... degrees of freedom, divided by sqrt(n)); the law of the eigenvalues
    is exact at every width.

    Cost: O(width^2) time, O(width) memory (0.3 s at width 5000).

    Example:
        >>> values = goe_eigenvalues(2000, generator=torch.Generator().manual_seed(0))
        >>> bool((values.abs() < 2.1).all())
        True
    """
    from scipy.linalg import eigvalsh_tridiagonal

    width = require_integer(width, "width", at_least=1)
    diagonal = normal_entries(width, generator=generator) * (2 / width) ** 0.5
    degrees = torch.arange(width - 1, 0, -1, dtype=torch.float64, device=generator.device)
    chi_square = 2 * torch._standard_gamma(degrees / 2, generator=generator)
    beside = (chi_square / width).sqrt()
    values = eigvalsh_tridiagonal(diagonal.cpu().numpy(), beside.cpu().numpy())
    return torch.as_tensor(values, device=generator.device)


def haar_cosines(width: int, *, generator: torch.Generator) -> Float[Tensor, " n"]:
    """Cosines of the eigenvalue angles of one uniform orthogonal matrix, ascending.

    They are the eigenvalues of (O + O^T) / 2, and |1 - s exp(i theta)|^2 = 1 + s^2 - 2 s cos(theta), so one
    symmetric decomposition serves every scale s.

    Cost: one QR and one symmetric eigenvalue decomposition, O(width^3).
    """
    orthogonal = haar_orthogonal(require_integer(width, "width", at_least=1), width, generator=generator)
    return torch.linalg.eigvalsh((orthogonal + orthogonal.mT) / 2).clamp(-1.0, 1.0)
