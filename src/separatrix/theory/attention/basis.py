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
from separatrix.core.arithmetic.eigenvalues import eig

ArrayLike: TypeAlias = Tensor | numpy.ndarray | Sequence[Any]
"""What stands for a matrix in a public signature: a tensor, an array or nested lists."""

Numbers: TypeAlias = ArrayLike | int | float | numpy.generic
"""What stands for one number or many in a public signature."""

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


def real_numbers(given: object, name: str) -> Float[Tensor, "*batch"]:
    """Finite numbers in float64, from whatever holds them: a number, a list, an array of any layout, a tensor.

    Complex numbers without an imaginary part, as NumPy hands out eigenvalues, are taken as real; others are refused.
    """
    given = given.copy() if isinstance(given, numpy.ndarray) else given  # torch cannot hold negative strides
    try:
        tensor = given if isinstance(given, Tensor) else torch.as_tensor(numpy.asarray(given))
    except (TypeError, ValueError, RuntimeError):
        tensor = None
    if tensor is None or tensor.dtype == torch.bool:
        raise InvalidInput(f"{name} must be a number or an array of numbers; got {given!r}.")
    if tensor.is_complex():
        if bool((tensor.imag != 0).any()):
            raise InvalidInput(f"{name} must be real; got complex numbers.")
        tensor = tensor.real
    return as_float64(tensor, name)


def inverse_temperatures(beta: object) -> Float[Tensor, "*batch"]:
    """One inverse temperature, or an array of them."""
    betas = real_numbers(beta, "beta")
    if bool((betas < 0).any()):
        raise InvalidInput(f"beta must be a finite number of at least 0; got {float(betas.min())}.")
    return betas


def token_counts(n1: object, n2: object) -> tuple[Tensor, Tensor]:
    """The sizes of two groups, whole numbers or real weights of at least 0; integers stay integers."""
    found = []
    for name, given in (("n1", n1), ("n2", n2)):
        sizes = given if isinstance(given, Tensor) and not given.is_complex() else real_numbers(given, name)
        if bool((sizes < 0).any()) or bool(torch.isnan(sizes).any()):
            raise InvalidInput(f"{name} must be a number of tokens of at least 0; got {given!r}.")
        found.append(sizes)
    return found[0], found[1]


def attention_matrices(
    coupling: ArrayLike, value: ArrayLike, beta: object, *, heads: bool = False
) -> tuple[Float[Tensor, "*batch d d"], Float[Tensor, "*batch d d"]]:
    """Coupling times beta, and value, in float64 and of one shape.

    An array of betas has the leading axes of the matrices, or axes that broadcast against them; ``heads`` says that
    the axis before the matrices counts heads, which share a beta.
    """
    matrix = value_matrix(value)
    logits = as_float64(coupling, "coupling")
    require_square(logits, "coupling")
    if logits.shape[-1] != matrix.shape[-1]:
        raise ShapeError(
            f"coupling and value must have the same size; got {tuple(logits.shape)} and {tuple(matrix.shape)}. "
            "coupling is query' key, a square matrix of the size of value."
        )
    betas = inverse_temperatures(beta).to(logits.device)
    betas = betas[..., None, None, None] if heads and betas.ndim else betas[..., None, None]
    try:
        logits, matrix = torch.broadcast_tensors(betas * logits, matrix)
    except RuntimeError:
        raise ShapeError(
            f"beta must be one number, or have axes that fit those of coupling {tuple(logits.shape)} and value "
            f"{tuple(matrix.shape)}; got an array of shape {tuple(inverse_temperatures(beta).shape)}."
        ) from None
    return logits, matrix


def one_pair(coupling: ArrayLike, value: ArrayLike, beta: object) -> tuple[Tensor, Tensor]:
    """``attention_matrices`` for functions of one pair of matrices, which take no array of betas."""
    betas = inverse_temperatures(beta)
    if betas.numel() != 1:
        raise InvalidInput(
            f"beta must be one number here; got an array of shape {tuple(betas.shape)}. stable_windows and "
            "phase_diagram take arrays."
        )
    return attention_matrices(coupling, value, float(betas))


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
    eigenvalues, vectors = eig(value)
    by_imaginary = eigenvalues.imag.argsort(dim=-1, descending=True, stable=True)
    by_real = eigenvalues.real.gather(-1, by_imaginary).argsort(dim=-1, descending=True, stable=True)
    order = by_imaginary.gather(-1, by_real)
    return eigenvalues.gather(-1, order), vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))


def require_index(k: Any, dim: int) -> int:
    """Refuse an eigenvector's number outside 0 .. dim - 1."""
    single = hasattr(k, "__index__") and not isinstance(k, bool) and getattr(k, "ndim", 0) == 0
    if not single or not 0 <= int(k) < dim:
        raise InvalidInput(
            f"k must be an integer from 0 to {dim - 1}, an eigenvalue of value in descending order; got {k!r}."
        )
    return int(k)


def direction(value: Float[Tensor, "*batch d d"], k: Any) -> Direction:
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
