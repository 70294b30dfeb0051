"""Eigenvalues of many matrices at once, whatever one of them holds.

``torch.linalg.eigvals`` and ``eig`` fail for a whole batch if one matrix of it fails. The QR iteration behind them
gives up on a few finite matrices in a million (an eigenvalue repeated many times, entries of very different sizes). An
entry that is not finite is refused, or ends the process; so does ``eig`` on CPUs where the iteration gives up on a huge
matrix (oneMKL; seen with torch 2.13). Here matrices of extreme size are scaled by a power of two, which is exact, and a
matrix that fails is taken by itself: NaN for one that is not finite; the others by the routines of NumPy, which are
another library's, and in other bases, whose rounding is another.

Within the library these take the place of the functions of ``torch.linalg`` of the same names.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy
import torch
from jaxtyping import Complex, Shaped
from torch import Tensor

from ..errors import NotConverged
from .transforms import is_mapped

REFLECTIONS = 5
"""Other bases in which a matrix is tried."""
_ORDINARY = 0.3
"""Power of the largest number, and of its inverse, between which matrices are left as they are."""
_NAN = complex(math.nan, math.nan)
Found = TypeVar("Found")


def eigvals(matrices: Shaped[Tensor, "*batch n n"]) -> Complex[Tensor, "*batch n"]:
    """Eigenvalues; NaN for a matrix with an entry that is not finite.

    Cost: that of ``torch.linalg.eigvals``, except after a failure.
    """
    good, scale, safe = _tamed(matrices)
    try:
        values = torch.linalg.eigvals(safe)
    except torch.linalg.LinAlgError:
        if is_mapped(safe):
            raise
        each = [_eigvals_of(one) for one in safe.reshape(-1, *safe.shape[-2:])]
        values = torch.stack(each).reshape(safe.shape[:-1])
    return values if good is None else torch.where(good[..., None], values / scale, _NAN)


def eig(
    matrices: Shaped[Tensor, "*batch n n"],
) -> tuple[Complex[Tensor, "*batch n"], Complex[Tensor, "*batch n n"]]:
    """Eigenvalues and eigenvectors of length one, in columns; NaN for a matrix with an entry that is not finite.

    Cost: that of ``torch.linalg.eig``, except after a failure.
    """
    good, scale, safe = _tamed(matrices)
    try:
        values, vectors = torch.linalg.eig(safe)
    except torch.linalg.LinAlgError:
        if is_mapped(safe):
            raise
        each = [_eig_of(one) for one in safe.reshape(-1, *safe.shape[-2:])]
        values = torch.stack([one[0] for one in each]).reshape(safe.shape[:-1])
        vectors = torch.stack([one[1] for one in each]).reshape(safe.shape)
    if good is None:
        return values, vectors
    return torch.where(good[..., None], values / scale, _NAN), torch.where(good[..., None, None], vectors, _NAN)


def _tamed(matrices: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
    """Which matrices are finite, by what they were scaled, and the batch; None and no scale if all are ordinary."""
    with torch.no_grad():
        largest = matrices.abs().flatten(-2).amax(-1) if matrices.shape[-1] else matrices.real.new_zeros(())
        most = torch.finfo(largest.dtype).max ** _ORDINARY
        good = torch.isfinite(largest)
        extreme = good & (largest > 0) & ((largest > most) | (largest < 1 / most))
        if not is_mapped(matrices) and bool((good & ~extreme).all()):
            return None, largest, matrices
        exponent = torch.frexp(torch.where(extreme, largest, 1.0))[1] - 1
        scale = torch.ldexp(torch.ones_like(largest), -exponent)[..., None]
    return good, scale, torch.where(good[..., None, None], matrices, 0.0) * scale[..., None]


def _eigvals_of(matrix: Tensor) -> Tensor:
    def attempt(similar: Tensor, _: Tensor) -> Tensor:
        return torch.linalg.eigvals(similar)

    def elsewhere() -> Tensor:
        return torch.from_numpy(numpy.linalg.eigvals(_on_host(matrix))).to(matrix.device)

    found: Tensor = _first_success(matrix, attempt, elsewhere)
    return found.to(_complex(matrix))


def _eig_of(matrix: Tensor) -> tuple[Tensor, Tensor]:
    def attempt(similar: Tensor, basis: Tensor) -> tuple[Tensor, Tensor]:
        torch.linalg.eigvals(similar)  # raises where eig would write where it must not
        values, vectors = torch.linalg.eig(similar)
        return values, basis.to(vectors.dtype) @ vectors

    def elsewhere() -> tuple[Tensor, Tensor]:
        values, vectors = (torch.from_numpy(part).to(matrix.device) for part in numpy.linalg.eig(_on_host(matrix)))
        return values, vectors

    values, vectors = _first_success(matrix, attempt, elsewhere)
    return values.to(_complex(matrix)), vectors.to(_complex(matrix))


def _first_success(matrix: Tensor, attempt: Callable[[Tensor, Tensor], Found], elsewhere: Callable[[], Found]) -> Found:
    """What another library or one of several bases gives; the library cannot be differentiated through."""
    try:
        return attempt(matrix, torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device))
    except torch.linalg.LinAlgError:
        pass
    if not (matrix.requires_grad and torch.is_grad_enabled()):
        with contextlib.suppress(numpy.linalg.LinAlgError):
            return elsewhere()
    for basis in _reflections(matrix):
        with contextlib.suppress(torch.linalg.LinAlgError):
            return attempt(basis @ matrix @ basis, basis)
    size, largest = matrix.shape[-1], float(matrix.detach().abs().max())
    raise NotConverged(
        f"the eigenvalues of a {size} x {size} matrix (largest entry {largest:.3g}) were not found in "
        f"{1 + REFLECTIONS} bases; entries of fewer orders of magnitude may help."
    )


def _reflections(matrix: Tensor) -> Iterator[Tensor]:
    """Bases that are their own inverses."""
    size = matrix.shape[-1]
    identity = torch.eye(size, dtype=torch.float64, device=matrix.device)
    for attempt in range(1, 1 + REFLECTIONS):
        mirror = torch.arange(attempt, attempt + size, dtype=torch.float64, device=matrix.device).sqrt()
        yield (identity - 2 * torch.outer(mirror, mirror) / mirror.dot(mirror)).to(matrix.dtype)


def _on_host(matrix: Tensor) -> numpy.ndarray:
    wide = torch.complex128 if matrix.is_complex() else torch.float64
    array: numpy.ndarray = matrix.detach().cpu().to(wide).numpy()
    return array


def _complex(matrix: Tensor) -> torch.dtype:
    return matrix.dtype if matrix.is_complex() else torch.promote_types(matrix.dtype, torch.complex64)
