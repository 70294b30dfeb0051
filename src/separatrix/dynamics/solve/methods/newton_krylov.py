"""Newton's method with the linear systems solved by GMRES on Jacobian-vector products."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true, any_true
from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.names import suggest_options

from ..maps.counted import CountedMap
from ..maps.stacks import combination, orthogonalised
from .base import AbstractEquilibriumSolver, States


@dataclasses.dataclass
class NewtonHistory:
    """The map, and the last residual of each sample for the forcing term of Eisenstat and Walker."""

    fixed_point_map: CountedMap
    last_norm: Tensor | None = None


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class NewtonKrylov(AbstractEquilibriumSolver[NewtonHistory]):
    """z <- z + delta with (I - J) delta = f(z) - z, solved per sample by GMRES to a forcing tolerance.

    Finds equilibria that repel the iteration. A step costs one evaluation and up to ``krylov`` Jacobian-vector
    products of the whole batch, and memory (batch, krylov, d). The step is limited to ``trust`` times the larger of
    |z| and one, because far from a solution the full Newton step can be arbitrarily long.

    Args:
        krylov: largest dimension of the Krylov space.
        trust: largest step relative to max(|z|, 1).
    """

    krylov: int = 30
    trust: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.krylov, "krylov", at_least=1)
        require_positive(self.trust, "trust")

    def begin(self, fixed_point_map: CountedMap, z: States) -> NewtonHistory:
        """Remembers the map, whose derivative it needs."""
        return NewtonHistory(fixed_point_map)

    def propose(self, history: NewtonHistory, z: States, f: States, residual: States) -> States:
        """The Newton step of every sample."""
        forcing = _forcing(history, residual)

        def operator(direction: Tensor) -> Tensor:
            return direction - history.fixed_point_map.derivative(z, direction)

        delta = gmres(operator, residual, forcing, min(self.krylov, z.shape[1]))
        size = delta.norm(dim=-1, keepdim=True)
        limit = self.trust * z.norm(dim=-1, keepdim=True).clamp_min(1.0)
        return z + delta * (limit / size.clamp_min(torch.finfo(z.dtype).tiny)).clamp_max(1.0)


def _forcing(history: NewtonHistory, residual: Tensor) -> Tensor:
    """Eisenstat and Walker's second choice, 0.9 (r / r_last)^2, kept in [1e-6, 0.1]."""
    norm = residual.norm(dim=-1)
    if history.last_norm is None:
        forcing = torch.full_like(norm, 0.1)
    else:
        ratio = norm / history.last_norm.clamp_min(torch.finfo(norm.dtype).tiny)
        forcing = (0.9 * ratio**2).clamp(1e-6, 0.1)
    history.last_norm = norm
    return forcing


def gmres(operator: Callable[[Tensor], Tensor], rhs: States, rtol: Tensor, n_krylov: int) -> States:
    """Solve operator(x) = rhs for every row, to a relative residual ``rtol`` per row or ``n_krylov`` products.

    Arnoldi with two Gram-Schmidt passes; the least-squares problem of each row is kept triangular by rotations. A row
    takes its solution at the product at which it is done, whatever the others still need.
    """
    batch, dim = rhs.shape
    norm = rhs.norm(dim=-1)
    basis = rhs.new_zeros(batch, n_krylov + 1, dim)
    basis[:, 0] = _unit(rhs, norm)
    triangle = rhs.new_zeros(batch, n_krylov, n_krylov)
    target = rhs.new_zeros(batch, n_krylov + 1)
    target[:, 0] = norm
    rotations: list[tuple[Tensor, Tensor]] = []
    weights = rhs.new_zeros(batch, n_krylov)
    done = ~torch.isfinite(norm) | (norm == 0)
    for k in range(n_krylov):
        column = _arnoldi_step(operator, basis, k)
        column = _rotate(column, rotations, target, k)
        triangle[:, : k + 1, k] = column[:, : k + 1]
        finished = ~done & ((target[:, k + 1].abs() <= rtol * norm) | ~torch.isfinite(column).all(-1))
        last = k == n_krylov - 1
        if last or any_true(finished):
            solved = torch.linalg.solve_triangular(
                _safe(triangle[:, : k + 1, : k + 1]), target[:, : k + 1, None], upper=True
            ).squeeze(-1)
            take = (~done if last else finished).unsqueeze(-1)
            weights[:, : k + 1] = torch.where(take, solved, weights[:, : k + 1])
        done |= finished
        if all_true(done):
            break
    return combination(weights, basis[:, :-1])


def _arnoldi_step(operator: Callable[[Tensor], Tensor], basis: Tensor, k: int) -> Tensor:
    """Add the next basis vector of every row; the coefficients of its orthogonalisation."""
    vector, overlap = orthogonalised(basis[:, : k + 1], operator(basis[:, k]))
    column = basis.new_zeros(basis.shape[0], k + 2)
    column[:, : k + 1] = overlap
    column[:, k + 1] = vector.norm(dim=-1)
    basis[:, k + 1] = _unit(vector, column[:, k + 1])
    return column


def _rotate(column: Tensor, rotations: list[tuple[Tensor, Tensor]], target: Tensor, k: int) -> Tensor:
    """Apply the old Givens rotations to a new column, add the one that removes its last entry, rotate the target."""
    for i, (cosine, sine) in enumerate(rotations):
        upper, lower = column[:, i].clone(), column[:, i + 1].clone()
        column[:, i] = cosine * upper + sine * lower
        column[:, i + 1] = cosine * lower - sine * upper
    length = torch.hypot(column[:, k], column[:, k + 1])
    flat = length == 0
    divisor = torch.where(flat, torch.ones_like(length), length)
    cosine = torch.where(flat, torch.ones_like(length), column[:, k] / divisor)
    sine = column[:, k + 1] / divisor
    rotations.append((cosine, sine))
    column[:, k], column[:, k + 1] = length, 0.0
    target[:, k + 1] = -sine * target[:, k]
    target[:, k] = cosine * target[:, k]
    return column


def _unit(vector: Tensor, norm: Tensor) -> Tensor:
    tiny = torch.finfo(vector.dtype).tiny
    return torch.where((norm > tiny).unsqueeze(-1), vector / norm.clamp_min(tiny).unsqueeze(-1), 0.0)


def _safe(triangle: Tensor) -> Tensor:
    """A zero pivot belongs to a row that has nothing left to solve; one in its place leaves the solution finite."""
    diagonal = triangle.diagonal(dim1=-2, dim2=-1)
    return triangle + torch.diag_embed((diagonal == 0).to(triangle.dtype))
