"""What a parametrisation of orthogonal or unitary matrices is: a named set with four verbs."""

from __future__ import annotations

import abc
from typing import ClassVar

import torch
from torch import Tensor, nn

from separatrix.core.arrays import require_integer, require_matrix
from separatrix.core.errors import InvalidInput, ShapeError

Free = Tensor | tuple[Tensor, ...]


class AbstractOrthogonalMap(nn.Module, abc.ABC):
    """Free numbers to orthogonal (or unitary) matrices of size n.

    The four verbs are those of torch's own parametrisations and two more: ``forward`` (free numbers to a member),
    ``right_inverse`` (a member to free numbers), ``in_manifold`` and ``sample``. So an object of this class can be
    registered on any square weight (``make_orthogonal_`` does it), and any optimiser moves the free numbers.

    For implementers: write ``forward``, ``invert``, ``draw`` and the names of the free tensors. A map that does not
    reach every orthogonal matrix raises ``InvalidInput`` in ``invert``; ``right_inverse`` still gives back what
    ``sample`` drew last. Checked by ``tests/nn/orthogonal/test_orthogonal_map_contract.py``.
    """

    name: ClassVar[str]
    free_names: ClassVar[tuple[str, ...]]
    """What the free tensors are called in a ``state_dict``."""
    is_complex: ClassVar[bool] = False
    margin: float = 0.0
    """How far singular values may be from one."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = require_integer(n, "n", at_least=1)
        self._drawn: tuple[Tensor, tuple[Tensor, ...]] | None = None

    @abc.abstractmethod
    def forward(self, *free: Tensor) -> Tensor:
        """The matrix of the free numbers."""

    @abc.abstractmethod
    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Free numbers of a member.

        Raises:
            InvalidInput: the map does not reach this member.
        """

    @abc.abstractmethod
    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Free numbers in float64, at random: by a named initialisation, or as is usual for this map."""

    def right_inverse(self, matrix: Tensor) -> Free:
        """Free numbers of a member; torch calls this when a weight is assigned.

        Raises:
            InvalidInput: not a member, or one that this map does not reach.
        """
        self._require_member(matrix)
        free = self._recalled(matrix)
        if free is None:
            free = self.invert(matrix.detach())
        real = matrix.abs().dtype
        free = tuple(part.to(matrix.device, real) for part in free)
        return free if len(free) > 1 or self.is_complex else free[0]  # alone, torch wants the dtype of the weight

    @torch.no_grad()
    def in_manifold(self, matrix: Tensor, tol: float | None = None) -> bool:
        """Whether ``|W^H W - I|`` is at most ``tol`` in every entry (by default 2e-5, in float64 1e-10, and four
        roundings in half precision)."""
        if matrix.shape != (self.n, self.n) or matrix.is_complex() > self.is_complex:
            return False
        limit = member_tolerance(matrix) if tol is None else tol
        return orthogonality_error(matrix) <= limit

    @torch.no_grad()
    def sample(self, start: str | None = None, *, generator: torch.Generator) -> Tensor:
        """Draw a member in float64, by a named initialisation if one is given."""
        free = self.draw(start, generator=generator)
        matrix = self._value_at(free)
        self._drawn = (matrix, free)
        return matrix.clone()

    def _value_at(self, free: tuple[Tensor, ...]) -> Tensor:
        """The member of free numbers in float64, without a trace in this object."""
        matrix: Tensor = self.forward(*free)
        return matrix

    def _recalled(self, matrix: Tensor) -> tuple[Tensor, ...] | None:
        if self._drawn is None:
            return None
        drawn, free = self._drawn
        gap = (matrix.detach().to(drawn.device, drawn.dtype) - drawn).abs().max()
        return free if float(gap) <= 4 * torch.finfo(matrix.abs().dtype).eps else None

    def _require_member(self, matrix: Tensor) -> None:
        if matrix.shape != (self.n, self.n):
            raise ShapeError(f"the weight must be a square matrix of size {self.n}; got shape {tuple(matrix.shape)}.")
        if matrix.is_complex() and not self.is_complex:
            raise InvalidInput(f"the {self.name} map gives real matrices; got {matrix.dtype}.")
        if not self.in_manifold(matrix):
            kind = "unitary" if self.is_complex else "orthogonal"
            near = f" to a margin of {self.margin}" if self.margin else ""
            error = orthogonality_error(matrix)
            raise InvalidInput(
                f"the weight must be {kind}{near}; the largest entry of W'W - I is {error:.2g}. Assign "
                "nearest_orthogonal(weight) instead."
            )

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.n}"


def member_tolerance(matrix: Tensor) -> float:
    """By how much a matrix of this precision may fail to be orthogonal."""
    real = matrix.dtype.to_real()
    if real == torch.float64:
        return 1e-10
    return 2e-5 if real == torch.float32 else 4 * torch.finfo(real).eps


def widened(tensor: Tensor) -> Tensor:
    """In float32 where it has less; decompositions and sums of squares need that much."""
    return tensor.to(torch.float32) if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


@torch.no_grad()
def orthogonality_error(matrix: Tensor) -> float:
    """The largest entry of ``|W^H W - I|``; NaN counts as infinite."""
    require_matrix(matrix, "matrix")
    matrix = widened(matrix)
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return float((matrix.mH @ matrix - identity).abs().nan_to_num(float("inf")).max())


@torch.no_grad()
def nearest_orthogonal(matrix: Tensor) -> Tensor:
    """The orthogonal (unitary) matrix nearest to a square one in the Frobenius norm: its polar factor.

    Raises:
        InvalidInput: a matrix that is not finite or not square.

    Example:
        >>> nearest_orthogonal(torch.tensor([[2.0, 0.0], [0.0, -3.0]]))
        tensor([[ 1.,  0.],
                [ 0., -1.]])
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"matrix must be square; got shape {tuple(matrix.shape)}.")
    if not bool(torch.isfinite(matrix).all()):
        raise InvalidInput("matrix must be finite.")
    wide = matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)
    left, _, right = torch.linalg.svd(wide)
    return (left @ right).to(matrix.dtype)
