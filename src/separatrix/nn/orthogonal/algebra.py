"""Skew matrices as plain vectors: the flat spaces in which an optimiser moves, and their gradients."""

from __future__ import annotations

import functools

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core.errors import ShapeError


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)  # a tensor that is kept must serve training too
def _above(n: int, device: torch.device) -> Int[Tensor, " k"]:
    """Places of the entries above the diagonal, row by row, in a flattened matrix."""
    rows, columns = torch.triu_indices(n, n, 1, device=device)
    return rows * n + columns


@functools.lru_cache(maxsize=64)
@torch.inference_mode(False)
def _origins(n: int, device: torch.device) -> Int[Tensor, " n_squared"]:
    """Where each entry of a skew matrix comes from, in a list of the entries, their negatives, and a zero."""
    above = _above(n, device)
    rows, columns = above // n, above % n
    origins = torch.full((n * n,), 2 * len(above), device=device)
    origins[above] = torch.arange(len(above), device=device)
    origins[columns * n + rows] = torch.arange(len(above), 2 * len(above), device=device)
    return origins


def skew(entries: Float[Tensor, " k"], n: int) -> Float[Tensor, "n n"]:
    """The skew-symmetric matrix with these entries above its diagonal, row by row."""
    _require_entries(entries, n)
    signed = torch.cat([entries, -entries, entries.new_zeros(1)])
    return signed.index_select(0, _origins(n, entries.device)).reshape(n, n)


def skew_entries(matrix: Float[Tensor, "n n"]) -> Float[Tensor, " k"]:
    """The entries above the diagonal of a skew-symmetric matrix."""
    return matrix.flatten().index_select(0, _above(matrix.shape[-1], matrix.device))


def skew_gradient(gradient: Float[Tensor, "n n"]) -> Float[Tensor, " k"]:
    """The gradient by the entries, from that by the matrix."""
    return skew_entries(gradient - gradient.mT)


def skew_hermitian(entries: Float[Tensor, " n_squared"], n: int) -> Complex[Tensor, "n n"]:
    """The skew-Hermitian matrix X + iY: X skew from the first entries, Y symmetric from the next, its diagonal last."""
    half = n * (n - 1) // 2
    real, across, diagonal = entries[:half], entries[half : 2 * half], entries[2 * half :]
    imaginary = _placed(across, n)
    return torch.complex(skew(real, n), imaginary + imaginary.mT + torch.diag(diagonal))


def skew_hermitian_entries(matrix: Complex[Tensor, "n n"]) -> Float[Tensor, " n_squared"]:
    """The inverse of ``skew_hermitian``."""
    return torch.cat([skew_entries(matrix.real), skew_entries(matrix.imag), matrix.imag.diagonal()])


def skew_hermitian_gradient(gradient: Complex[Tensor, "n n"]) -> Float[Tensor, " n_squared"]:
    """The gradient by the entries, from that by the matrix (torch's convention for complex numbers)."""
    real, imaginary = gradient.real, gradient.imag
    return torch.cat([skew_gradient(real), skew_entries(imaginary + imaginary.mT), imaginary.diagonal()])


def _placed(entries: Tensor, n: int) -> Tensor:
    _require_entries(entries, n)
    zeros = torch.zeros(n * n, dtype=entries.dtype, device=entries.device)
    return zeros.index_put((_above(n, entries.device),), entries).reshape(n, n)


def _require_entries(entries: Tensor, n: int) -> None:
    if entries.shape != (n * (n - 1) // 2,):
        raise ShapeError(f"a skew matrix of size {n} has {n * (n - 1) // 2} entries; got shape {tuple(entries.shape)}.")
