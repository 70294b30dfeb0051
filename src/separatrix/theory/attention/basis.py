"""Eigenpairs of the value matrix, and the checks of arguments that every closed form of the attention flow shares.

Convention: the flow is dx_i/dt = (I - x_i x_i') V sum_j A_ij x_j with A the row softmax of beta x_i' M x_j.
Eigenvalues of the value matrix V are numbered from 0 in descending order of their real part. Whatever decides
stability is computed in float64, whatever the dtype of the arguments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from separatrix.core import InvalidInput, OutsideTheory, ShapeError, as_float64, relative_asymmetry, require_square

ArrayLike: TypeAlias = Tensor | numpy.ndarray | Sequence[Any]
"""What stands for a matrix in a public signature: a tensor, an array or nested lists."""

SYMMETRIC = 1e-12
"""Largest relative asymmetry that still counts as rounding."""


@final
@dataclasses.dataclass(frozen=True)
class Direction:
    """One real eigenvector of the value matrix, its eigenvalue, and all the other eigenvalues."""

    eigenvalue: Float[Tensor, "*batch"]
    vector: Float[Tensor, "*batch d"]
    others: Shaped[Tensor, "*batch others"]
    scale: Float[Tensor, "*batch"]
    """Largest modulus of an eigenvalue: the unit in which an eigenvalue is large or small."""


def value_matrix(value: ArrayLike, name: str = "value") -> Float[Tensor, "*batch d d"]:
    """The value matrix in float64; refuses anything but finite square matrices with at least two rows."""
    matrix = as_float64(value, name)
    require_square(matrix, name)
    if matrix.shape[-1] < 2:
        raise ShapeError(f"{name} must have at least 2 rows, since tokens live on a circle or a sphere; got 1.")
    return matrix


def attention_matrices(
    coupling: ArrayLike, value: ArrayLike, beta: int | float
) -> tuple[Float[Tensor, "*batch d d"], Float[Tensor, "*batch d d"]]:
    """Coupling times beta, and value, in float64 and of one shape."""
    matrix = value_matrix(value)
    logits = as_float64(coupling, "coupling")
    require_square(logits, "coupling")
    if logits.shape[-1] != matrix.shape[-1]:
        raise ShapeError(
            f"coupling and value must have the same size; got {tuple(logits.shape)} and {tuple(matrix.shape)}. "
            "coupling is query' key, a square matrix of the size of value."
        )
    if not (0 <= beta < float("inf")):
        raise InvalidInput(f"beta must be a finite number of at least 0; got {beta}.")
    logits, matrix = torch.broadcast_tensors(beta * logits, matrix)
    return logits, matrix


def is_symmetric(value: Float[Tensor, "*batch d d"]) -> bool:
    """Whether every matrix of the batch is symmetric up to rounding."""
    return bool((relative_asymmetry(value) <= SYMMETRIC).all())


def require_symmetric(value: Float[Tensor, "*batch d d"], alternative: str) -> None:
    """Refuse a value matrix that is not symmetric, naming the route that does not need symmetry."""
    if not is_symmetric(value):
        gap = float((value - value.mT).abs().max())
        raise OutsideTheory(
            f"value must be symmetric for this formula; the largest entry of V - V' is {gap:.3g}. Use {alternative}."
        )


def eigenbasis(
    value: Float[Tensor, "*batch d d"],
) -> tuple[Shaped[Tensor, "*batch d"], Shaped[Tensor, "*batch d d"]]:
    """Eigenvalues in descending order of the real part, and unit eigenvectors as columns; real for symmetric value."""
    if is_symmetric(value):
        eigenvalues, vectors = torch.linalg.eigh((value + value.mT) / 2)
        return eigenvalues.flip(-1), vectors.flip(-1)
    eigenvalues, vectors = torch.linalg.eig(value)
    by_imaginary = eigenvalues.imag.argsort(dim=-1, descending=True, stable=True)
    by_real = eigenvalues.real.gather(-1, by_imaginary).argsort(dim=-1, descending=True, stable=True)
    order = by_imaginary.gather(-1, by_real)
    return eigenvalues.gather(-1, order), vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))


def require_index(k: Any, dim: int) -> int:
    """Refuse an eigenvector's number outside 0 .. dim - 1."""
    if isinstance(k, bool) or not hasattr(k, "__index__") or not 0 <= int(k) < dim:
        raise InvalidInput(
            f"k must be an integer from 0 to {dim - 1}, an eigenvalue of value in descending order; got {k!r}."
        )
    return int(k)


def direction(value: Float[Tensor, "*batch d d"], k: int) -> Direction:
    """The k-th eigenvector of value with its eigenvalue and the others.

    Raises:
        OutsideTheory: the k-th eigenvalue is complex, so that it has no real eigenvector.
    """
    k = require_index(k, value.shape[-1])
    eigenvalues, vectors = eigenbasis(value)
    chosen, vector = eigenvalues[..., k], vectors[..., k]
    if chosen.is_complex() and bool((chosen.imag != 0).any()):
        worst = complex(chosen[chosen.imag != 0].reshape(-1)[0])
        raise OutsideTheory(
            f"eigenvalue {k} of value is complex ({worst:.4g}), so no token can rest on its eigenvector; "
            "tokens that agree rotate in its plane: see consensus_cycle."
        )
    others = torch.cat([eigenvalues[..., :k], eigenvalues[..., k + 1 :]], dim=-1)
    return Direction(chosen.real, vector.real, others, eigenvalues.abs().amax(-1))


def strength_along(logits: Float[Tensor, "*batch d d"], vector: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """c = beta v' M v, the logit of a token on v with itself (``logits`` is beta times the coupling)."""
    return torch.einsum("...a,...ab,...b->...", vector, logits, vector)
