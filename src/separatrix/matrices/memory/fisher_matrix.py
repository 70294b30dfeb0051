r"""The whole Fisher memory matrix: what a state knows of each past input, and how two of them are mixed up in it.

:math:`J_{kl} = (W^k v)^\top C^{-1} (W^l v)`. Its diagonal is the memory curve; an entry off the diagonal says that the
estimates of the inputs k and l steps ago disturb each other. A delay line, and what a rotation makes of it, has none.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core import Result

from .ball_memory import ball_memory
from .fisher_memory import DOUBLE_BITS, FisherMemory, fisher_memory_curve, signals


@final
@dataclasses.dataclass(frozen=True, repr=False)
class FisherMatrix(Result):
    """All J_kl of a linear recurrent network; NaN in elements that are not ``trustworthy``."""

    matrix: Float[Tensor, "*batch k k"]
    interference: Float[Tensor, "*batch"]
    """Share of the Frobenius norm that stands off the diagonal: 0 where no two inputs disturb each other."""
    bits: Int[Tensor, "*batch"]
    """Precision used for each element; 53 is double."""
    trustworthy: Bool[Tensor, "*batch"]
    note: str = ""

    @property
    def curve(self) -> Float[Tensor, "*batch k"]:
        """The diagonal, J(k)."""
        return torch.diagonal(self.matrix, dim1=-2, dim2=-1)


def fisher_memory_matrix(
    recurrent: Float[Tensor, "*batch h h"],
    source: Float[Tensor, "*#batch h"],
    n_steps: int,
    noise_var: float = 1.0,
    precision: Literal["auto", "double"] | int = "auto",
) -> FisherMatrix:
    r"""The Fisher memory matrix with its interference terms.

    .. math:: J_{kl} = (W^k v)^\top C^{-1} (W^l v)

    Args:
        recurrent: stable matrices W (spectral radius below 1).
        source: direction v by which the signal enters; scaled to length 1, with a note, if it is not.
        n_steps: number of lags.
        noise_var: variance of the noise per unit and step.
        precision: as in ``fisher_memory_curve``.

    Raises:
        InvalidInput: as ``fisher_memory_curve``.

    Source:
        kerg2022, section 2.6.

    Cost: that of ``fisher_memory_curve``, and one product of (k, h) and (h, k) matrices.

    Example:
        >>> line = torch.diag(torch.ones(3, dtype=torch.float64), -1)
        >>> fisher_memory_matrix(line, torch.eye(4, dtype=torch.float64)[0], 2).matrix.tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    memory = fisher_memory_curve(recurrent, source, n_steps, noise_var, precision)
    size = memory.covariance.shape[-1]
    batch = memory.covariance.shape[:-2]
    wide = torch.as_tensor(recurrent).detach().reshape(-1, size, size).to(torch.float64)
    entry = torch.as_tensor(source).detach().to(torch.float64).expand(*batch, size).reshape(-1, size)
    entry = entry / torch.linalg.vector_norm(entry, dim=-1, keepdim=True)
    flat = _in_double(wide, entry, memory, n_steps)
    for index in torch.nonzero(memory.bits.reshape(-1) > DOUBLE_BITS)[:, 0].tolist():
        bits = int(memory.bits.reshape(-1)[index])
        found = ball_memory(
            wide[index].cpu().numpy(), entry[index].cpu().numpy(), n_steps, noise_var, bits, adapt=True, whole=True
        )
        flat[index] = torch.as_tensor(found.matrix, dtype=flat.dtype)
    flat[~memory.trustworthy.reshape(-1)] = math.nan
    matrix = flat.reshape(*batch, n_steps, n_steps).to(memory.curve.dtype)
    return FisherMatrix(matrix, _interference(matrix), memory.bits, memory.trustworthy, memory.note)


def _in_double(recurrent: Tensor, source: Tensor, memory: FisherMemory, n_steps: int) -> Tensor:
    size = recurrent.shape[-1]
    covariance = memory.covariance.reshape(-1, size, size).to(torch.float64)
    factor, _ = torch.linalg.cholesky_ex((covariance + covariance.mT) / 2)
    whitened = torch.linalg.solve_triangular(factor, signals(recurrent, source, n_steps), upper=False)
    return whitened.mT @ whitened


def _interference(matrix: Tensor) -> Tensor:
    diagonal = torch.diag_embed(torch.diagonal(matrix, dim1=-2, dim2=-1))
    return torch.linalg.matrix_norm(matrix - diagonal) / torch.linalg.matrix_norm(matrix)
