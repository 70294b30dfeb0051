r"""Schur forms in the lower-triangular convention, split into blocks and a feed-forward part.

A real matrix is :math:`V = P(\Lambda + T)P^\top`: P orthogonal, Lambda block diagonal with a 1x1 block for each real
eigenvalue and a 2x2 block for each complex pair, T strictly below the blocks. Columns of P are the Schur modes; T
says which mode feeds which.

A 2x2 block of a Schur form is a rotation only if the block is normal. In general it needs a third number,

.. math:: R(\gamma, \theta, \kappa) = \gamma
    \begin{pmatrix} \cos\theta & -e^{\kappa}\sin\theta \\ e^{-\kappa}\sin\theta & \cos\theta \end{pmatrix},

whose eigenvalues are :math:`\gamma e^{\pm i\theta}` for every kappa, and whose departure from normality is
:math:`2\gamma|\sin\theta|\sinh|\kappa|`.

Torch has no Schur decomposition, batched or not, so both functions here loop over the batch and call LAPACK through
SciPy on the CPU, in float64; results return in the dtype and on the device of the input.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import numpy
import scipy.linalg
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, Result, as_tensor, require_square


@final
@dataclasses.dataclass(frozen=True, repr=False)
class SchurParts(Result):
    """A real Schur form, ``matrix = basis @ (rotations + feedforward) @ basis.mT``.

    Blocks are listed from the top left. Matrices of a batch may have different numbers of blocks: the shorter lists
    end in block size 0 and NaN.
    """

    basis: Float[Tensor, "*batch h h"]
    rotations: Float[Tensor, "*batch h h"]
    feedforward: Float[Tensor, "*batch h h"]
    block_sizes: Int[Tensor, "*batch b"]
    gamma: Float[Tensor, "*batch b"]
    """Modulus of the eigenvalues of each block."""
    theta: Float[Tensor, "*batch b"]
    """Angle of the block: 0 or pi for a real eigenvalue, plus and minus theta are the angles of a pair."""
    kappa: Float[Tensor, "*batch b"]
    """Skew of the block, 0 if the block is normal and for every 1x1 block."""

    @property
    def schur_form(self) -> Float[Tensor, "*batch h h"]:
        """The lower block-triangular form: rotations and feed-forward part together."""
        return self.rotations + self.feedforward


def schur_parts(matrix: Float[Tensor, "*batch h h"]) -> SchurParts:
    """Split a real matrix into orthogonal modes, their rotations, and what they feed forward.

    Blocks stand in order of falling modulus and, at equal modulus, rising absolute angle. The order makes the form
    reproducible; moduli closer than rounding may still change places.

    Args:
        matrix: real square matrices.

    Returns:
        Basis, block-diagonal part, strictly lower part, and gamma, theta and kappa of each block.

    Raises:
        InvalidInput: the matrix is complex, not square or not finite.

    Source:
        kerg2022, Eq. (3.4.1); the third number of a block corrects section 2.3.2 (erratum kerg2022-rotation-blocks).

    Cost: about ``25 n^3`` operations per matrix, plus ``n^2`` for each block that has to change its place.

    Example:
        >>> parts = schur_parts(torch.tensor([[0.5, -2.0], [0.3, 0.5]], dtype=torch.float64))
        >>> [round(float(value), 4) for value in (parts.gamma, parts.theta, parts.kappa)]
        [0.922, 0.9976, 0.9486]
    """
    matrix = as_tensor(matrix, "matrix", allow_complex=True)
    require_square(matrix, "matrix")
    if matrix.is_complex():
        raise InvalidInput(f"matrix must be real; got {matrix.dtype}. Use complex_schur_form for complex matrices.")
    batch, size = matrix.shape[:-2], matrix.shape[-1]
    arrays = matrix.detach().reshape(-1, size, size).to("cpu", torch.float64).numpy()
    splits = [_split_one(array) for array in arrays]
    shown = splits or [_split_one(numpy.zeros((size, size)))]  # an empty batch still has shapes
    width = max(len(split["block_sizes"]) for split in shown)

    def stack(name: str, fill: float) -> Tensor:
        rows = [split[name] for split in shown]
        if rows[0].ndim == 1:
            rows = [numpy.pad(row, (0, width - len(row)), constant_values=fill) for row in rows]
        stacked = torch.as_tensor(numpy.stack(rows)[: len(splits)])
        stacked = stacked.reshape((*batch, *stacked.shape[1:])).to(matrix.device)
        return stacked if name == "block_sizes" else stacked.to(matrix.dtype)

    return SchurParts(
        stack("basis", 0.0),
        stack("rotations", 0.0),
        stack("feedforward", 0.0),
        stack("block_sizes", 0.0),
        stack("gamma", math.nan),
        stack("theta", math.nan),
        stack("kappa", math.nan),
    )


def complex_schur_form(matrix: Tensor) -> Complex[Tensor, "*batch h h"]:
    """Upper triangular ``T`` with ``matrix = Z T Z^H``, Z unitary; eigenvalues stand on the diagonal.

    Works for real and complex matrices. Cost: about ``25 n^3`` operations per matrix, one after the other.
    """
    matrix = as_tensor(matrix, "matrix", allow_complex=True)
    require_square(matrix, "matrix")
    size = matrix.shape[-1]
    wide = torch.complex128 if matrix.is_complex() else torch.float64
    arrays = matrix.detach().reshape(-1, size, size).to("cpu", wide).numpy()
    forms = numpy.empty(arrays.shape, dtype=numpy.complex128)
    for index, array in enumerate(arrays):
        forms[index] = scipy.linalg.schur(array, output="complex")[0]
    narrow = matrix.dtype if matrix.is_complex() else matrix.dtype.to_complex()
    return torch.as_tensor(forms).reshape(matrix.shape).to(matrix.device, narrow)


def rotation_block(
    gamma: Float[Tensor, "*batch"], theta: Float[Tensor, "*batch"], kappa: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch 2 2"]:
    """The 2x2 blocks with eigenvalues ``gamma exp(+-i theta)`` and skew ``kappa``; see the module's formula."""
    cos, sin = gamma * torch.cos(theta), gamma * torch.sin(theta)
    top = torch.stack([cos, -torch.exp(kappa) * sin], dim=-1)
    bottom = torch.stack([torch.exp(-kappa) * sin, cos], dim=-1)
    return torch.stack([top, bottom], dim=-2)


def _split_one(array: numpy.ndarray) -> dict[str, numpy.ndarray]:
    form, basis = scipy.linalg.schur(array.T, output="real")
    form, basis, starts = _order_blocks(form, basis)
    lower = numpy.ascontiguousarray(form.T)
    rotations = numpy.zeros_like(lower)
    numbers = []
    for start, stop in zip(starts, [*starts[1:], len(lower)], strict=True):
        block = lower[start:stop, start:stop]
        rotations[start:stop, start:stop] = block
        numbers.append((stop - start, *_block_numbers(block)))
    sizes, gamma, theta, kappa = (numpy.array(column) for column in zip(*numbers, strict=True))
    return {
        "basis": basis,
        "rotations": rotations,
        "feedforward": numpy.tril(lower - rotations, -1),
        "block_sizes": sizes.astype(numpy.int64),
        "gamma": gamma,
        "theta": theta,
        "kappa": kappa,
    }


def _block_numbers(block: numpy.ndarray) -> tuple[float, float, float]:
    a = float(block[0, 0])
    if len(block) == 1:
        return abs(a), 0.0 if a >= 0 else math.pi, 0.0
    b, c = float(block[0, 1]), float(block[1, 0])
    s = math.sqrt(-b) * math.sqrt(c) if c > 0 else math.sqrt(b) * math.sqrt(-c)
    return math.hypot(a, s), math.atan2(math.copysign(s, c), a), (math.log(abs(b)) - math.log(abs(c))) / 2


def _block_starts(form: numpy.ndarray) -> list[int]:
    """First row of each diagonal block of an upper quasi-triangular form."""
    starts = numpy.ones(len(form), dtype=bool)
    starts[1:] = numpy.diagonal(form, -1) == 0
    return [int(row) for row in numpy.flatnonzero(starts)]


def _order_blocks(form: numpy.ndarray, basis: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray, list[int]]:
    """Selection sort of the blocks by LAPACK's swaps, which keep the form a Schur form of the same matrix.

    A swap that LAPACK refuses concerns eigenvalues that agree to rounding; their order has no meaning.
    """
    scale = max(1e-9 * float(numpy.linalg.norm(form, 2)), numpy.finfo(float).tiny)
    place = 0
    while place < len(form):
        candidates = [row for row in _block_starts(form) if row >= place]
        best = min(candidates, key=lambda row: _rank(form, row, scale))
        if best != place:
            form, basis, _ = scipy.linalg.lapack.dtrexc(form, basis, best + 1, place + 1)
        place += _block_size(form, place)
    return form, basis, _block_starts(form)


def _block_size(form: numpy.ndarray, row: int) -> int:
    return 2 if row + 1 < len(form) and form[row + 1, row] != 0 else 1


def _rank(form: numpy.ndarray, row: int, scale: float) -> tuple[int, float]:
    """Falling modulus, counted in steps of ``scale`` so that equal moduli tie, then rising angle."""
    stop = row + _block_size(form, row)
    gamma, theta, _ = _block_numbers(form[row:stop, row:stop])
    return -round(gamma / scale), abs(theta)
