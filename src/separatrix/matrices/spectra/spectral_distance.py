"""How far two spectra are apart, as multisets of complex numbers."""

from __future__ import annotations

import torch
from jaxtyping import Shaped
from torch import Tensor

from separatrix.core import ShapeError, as_tensor


def spectral_distance(first: Shaped[Tensor, " n"], second: Shaped[Tensor, " m"]) -> float:
    """Largest distance between paired eigenvalues under the pairing with the least total distance.

    Args:
        first, second: equally many eigenvalues each, in any order.

    Cost: O(n^3), an assignment problem.

    Example:
        >>> spectral_distance(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.5]))
        0.5
    """
    from scipy.optimize import linear_sum_assignment

    first = as_tensor(first, "first", dtype=torch.complex128)
    second = as_tensor(second, "second", dtype=torch.complex128)
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(
            f"spectra must be lists of equally many eigenvalues; got {tuple(first.shape)} and {tuple(second.shape)}."
        )
    gaps = (first[:, None] - second[None, :]).abs()
    rows, columns = linear_sum_assignment(gaps.numpy())
    return float(gaps[rows, columns].max()) if len(rows) else 0.0
