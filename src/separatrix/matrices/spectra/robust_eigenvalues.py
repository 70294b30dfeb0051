"""Eigenvalues that are found also where the library's iteration stalls."""

from __future__ import annotations

from jaxtyping import Complex, Shaped
from torch import Tensor

from separatrix.core import as_tensor, require_square
from separatrix.core.arithmetic.eigenvalues import eigvals


def robust_eigenvalues(matrix: Shaped[Tensor, "*batch n n"]) -> Complex[Tensor, "*batch n"]:
    """Eigenvalues of square matrices, retried by other routines and in other bases if the iteration fails.

    The QR iteration behind ``torch.linalg.eigvals`` gives up on a few matrices in a million, typically ones with an
    eigenvalue repeated many times; a reflection of the basis changes rounding and leaves eigenvalues as they are.

    Cost: that of ``torch.linalg.eigvals``, except after a failure.
    """
    matrix = as_tensor(matrix, "matrix", allow_complex=True, half=False)
    require_square(matrix, "matrix")
    return eigvals(matrix)
