"""Linear systems of many matrices at once, right whatever the number of threads.

On CPUs torch factorises the matrices of a batch by LU in several threads at once, and from about 150 rows its library
(oneMKL) is not safe for that: the pivots or the factors are wrong, without a word, or the call never returns
(pytorch/pytorch issues 142815 and 141358; fault seen with torch 2.5 to 2.13). One matrix at a time is right, and such
large ones are split among threads by themselves. Symmetric, orthogonal and triangular factorisations, eigenvalues and
least squares are not concerned.

These are the functions of ``torch.linalg`` of the same names; within the library they take their place.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .transforms import is_mapped

SMALL = 128
"""Rows up to which a batch is factorised at once: below those that the library divides into blocks."""


def solve(matrices: Tensor, right: Tensor) -> Tensor:
    """``matrices^-1 right``; raises where a matrix is singular."""
    if _at_once(matrices):
        return torch.linalg.solve(matrices, right)
    return _solved(matrices, right, raises=True)[0]


def solve_ex(matrices: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """``matrices^-1 right``, and zero for each matrix that is not singular."""
    if _at_once(matrices):
        result, info = torch.linalg.solve_ex(matrices, right)
        return result, info
    return _solved(matrices, right, raises=False)


def inv(matrices: Tensor) -> Tensor:
    """Inverses; raises where a matrix is singular."""
    if _at_once(matrices):
        return torch.linalg.inv(matrices)
    return _stacked([torch.linalg.inv(one) for one in _each(matrices)], matrices)


def inv_ex(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Inverses, and zero for each matrix that has one."""
    if _at_once(matrices):
        inverse, info = torch.linalg.inv_ex(matrices)
        return inverse, info
    inverses, infos = zip(*(torch.linalg.inv_ex(one) for one in _each(matrices)), strict=True)
    return _stacked(inverses, matrices), _stacked(infos, matrices)


def lu_factor_ex(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Factors and pivots for ``torch.linalg.lu_solve``, also of singular matrices."""
    if _at_once(matrices):
        factors, pivots, _ = torch.linalg.lu_factor_ex(matrices)
        return factors, pivots
    found = [torch.linalg.lu_factor_ex(one) for one in _each(matrices)]
    return _stacked([one[0] for one in found], matrices), _stacked([one[1] for one in found], matrices)


def logabsdet(matrices: Tensor) -> Tensor:
    """Logarithms of the absolute determinants."""
    if _at_once(matrices):
        return torch.linalg.slogdet(matrices).logabsdet
    return _stacked([torch.linalg.slogdet(one).logabsdet for one in _each(matrices)], matrices)


def _at_once(matrices: Tensor) -> bool:
    """Whether the batch may be left to torch; below ``torch.func.vmap`` it must, whatever it hides."""
    if matrices.shape[-1] <= SMALL or matrices.device.type != "cpu" or torch.get_num_threads() == 1:
        return True
    return math.prod(matrices.shape[:-2]) <= 1 or is_mapped(matrices)


def _each(matrices: Tensor) -> tuple[Tensor, ...]:
    return matrices.reshape(-1, *matrices.shape[-2:]).unbind()


def _stacked(parts: list[Tensor] | tuple[Tensor, ...], matrices: Tensor) -> Tensor:
    return torch.stack(parts).reshape(*matrices.shape[:-2], *parts[0].shape)


def _solved(matrices: Tensor, right: Tensor, *, raises: bool) -> tuple[Tensor, Tensor]:
    """One by one; as in torch the right sides are vectors if they have the shape of the matrices without the last."""
    vectors = right.ndim == 1 or right.shape == matrices.shape[:-1]
    columns = right.unsqueeze(-1) if vectors else right
    axes = torch.broadcast_shapes(matrices.shape[:-2], columns.shape[:-2])
    wide = matrices.expand(*axes, *matrices.shape[-2:])
    sides = _each(columns.expand(*axes, *columns.shape[-2:]))
    if raises:
        found = [torch.linalg.solve(one, side) for one, side in zip(_each(wide), sides, strict=True)]
        infos = [one.new_zeros((), dtype=torch.int32) for one in found]
    else:
        both = [torch.linalg.solve_ex(one, side) for one, side in zip(_each(wide), sides, strict=True)]
        found, infos = [one.result for one in both], [one.info for one in both]
    result = _stacked(found, wide)
    return result.squeeze(-1) if vectors else result, _stacked(infos, wide)
