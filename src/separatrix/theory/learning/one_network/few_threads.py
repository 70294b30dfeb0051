"""Linear algebra on plain arrays: by NumPy where its library needs no threads, and by torch with those it may have.

The threads that OpenBLAS, NumPy's usual library, starts for larger matrices wait for one another at full speed. On a
busy machine a product of 0.1 ms then takes 14 ms of processor time. torch can be told how many threads it may have,
and NumPy cannot; but where no thread is started, NumPy's calls cost less.
"""

from __future__ import annotations

import os
import sys
from typing import Any, TypeAlias

import numpy
import torch
from numpy.typing import NDArray

from separatrix.core.arithmetic.linear_systems import inv_ex

Array: TypeAlias = NDArray[numpy.float64]


def _one_thread() -> bool:
    """Whether the environment allows OpenBLAS one thread only, as it does in workers; then it is quick at any size.

    OpenBLAS reads it when NumPy is loaded. Who sets it later has the threads, and large products cost what they cost.
    """
    return (os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")) == "1"


_ALONE = sys.maxsize if _one_thread() else 2**18
"""Multiplications up to which OpenBLAS multiplies two matrices on one thread."""
_ALONE_IN_A_SUM = sys.maxsize if _one_thread() else 10_000
"""Numbers up to which it sums products of two vectors on one thread."""


def matrix_product(left: Array, right: Array) -> Array:
    """``left @ right``, of a batch too."""
    found: Array
    if left.shape[-2] * left.shape[-1] * right.shape[-1] <= _ALONE:
        found = left @ right
    else:
        found = torch.matmul(torch.from_numpy(left), torch.from_numpy(right)).numpy()
    return found


def write_product(left: Array, right: Array, out: Array) -> None:
    """Fill in ``left @ right`` of two matrices."""
    if left.size * right.shape[1] <= _ALONE:
        numpy.matmul(left, right, out=out)
    else:
        torch.mm(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))


def inner(left: Array, right: Array) -> float:
    """The sum of ``left * right``."""
    return float(numpy.vdot(left, right) if left.size <= _ALONE_IN_A_SUM else numpy.einsum("ij,ij->", left, right))


def singular_parts(matrix: Array, whole: bool) -> tuple[Array, Array, Array]:
    """``U, s, V'``, with singular vectors for zero as well if ``whole``."""
    if _small(matrix):
        u, s, vh = numpy.linalg.svd(matrix, full_matrices=whole)
    else:
        u, s, vh = (part.numpy() for part in torch.linalg.svd(torch.from_numpy(matrix), full_matrices=whole))
    return u, s, vh


def orthonormal(matrix: Array) -> tuple[Array, Array]:
    """``Q, R``."""
    if _small(matrix):
        directions, upper = numpy.linalg.qr(matrix)
    else:
        directions, upper = (part.numpy() for part in torch.linalg.qr(torch.from_numpy(matrix)))
    return directions, upper


def upper_factor(matrix: Array) -> Array:
    """R of ``matrix = Q R``."""
    found: Any = numpy.linalg.qr(matrix, mode="r") if _small(matrix) else None
    if found is None:
        found = torch.linalg.qr(torch.from_numpy(matrix), mode="r").R.numpy()
    upper: Array = found
    return upper


def inverse(matrix: Array) -> Array | None:
    """The inverse, or None of a singular matrix."""
    found: Any
    if _small(matrix):
        try:
            found = numpy.linalg.inv(matrix)
        except numpy.linalg.LinAlgError:
            return None
    else:
        inverted, failed = inv_ex(torch.from_numpy(matrix))
        found = None if int(failed) else inverted.numpy()
    return found


def cholesky_factor(systems: Array) -> Array | None:
    """Lower factors (n, k, k) of positive-definite systems, or None if one of them is none."""
    found: Any
    if _small(systems):
        try:
            found = numpy.linalg.cholesky(systems)
        except numpy.linalg.LinAlgError:
            return None
    else:
        factors, failed = torch.linalg.cholesky_ex(torch.from_numpy(systems))
        found = None if int(failed.max()) else factors.numpy()
    return found


def _small(matrix: Array) -> bool:
    rows, columns = matrix.shape[-2:]
    return rows * columns * min(rows, columns) <= _ALONE
