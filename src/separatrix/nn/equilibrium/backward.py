"""Ways to differentiate through an equilibrium, one small object each.

``Implicit`` solves the adjoint equation v = J^T v + g, so its memory does not grow with the number of solver steps.
The others are cheaper approximations or checks.
"""

from __future__ import annotations

import abc
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import ConvergenceWarning, InvalidInput
from separatrix.core.names import suggest_options
from separatrix.dynamics.solve.anderson import Anderson
from separatrix.dynamics.solve.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.find import find_equilibrium
from separatrix.dynamics.solve.maps import AffineMap
from separatrix.dynamics.solve.solution import EquilibriumSolution

from .implicit_function import PackedMap, attach_equilibrium

Report: TypeAlias = Callable[[EquilibriumSolution], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractBackward(abc.ABC):
    """Turns a detached equilibrium into one that carries gradients to everything the map closes over."""

    @abc.abstractmethod
    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """The equilibrium with gradients; ``report`` receives the solution of the backward solve, if there is one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractLinearBackward(AbstractBackward):
    """Backward passes that replace the incoming gradient g by (I - J^T)^-1 g or an approximation of it.

    Implementers write ``solve``. The same solve with J in place of J^T gives forward-mode derivatives.
    """

    @abc.abstractmethod
    def solve(self, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        """Solve v = linear(v) + rhs for every sample."""

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """One evaluation of the map is kept; the linear equation is solved when the gradient arrives."""
        return attach_equilibrium(packed_map, z_star, lambda linear, rhs: self.solve(linear, rhs, report))


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Implicit(AbstractLinearBackward):
    """The implicit function theorem: v = J^T v + g by any fixed-point solver. Exact up to its tolerance."""

    solver: AbstractEquilibriumSolver[Any] = dataclasses.field(default_factory=lambda: Anderson(tol=1e-6, max_steps=60))

    def solve(self, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        """Solve from the right-hand side; a sample that does not converge takes its best iterate."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = find_equilibrium(AffineMap(linear, rhs), self.solver, rhs, throw=False)
        report(solution)
        return solution.best


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Neumann(AbstractLinearBackward):
    """The first terms of the series g + J^T g + (J^T)^2 g + ...; zero terms is ``OneStep``."""

    terms: int = 5

    def __post_init__(self) -> None:
        require_integer(self.terms, "terms", at_least=0)

    def solve(self, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        """Sum the series by Horner's rule."""
        vector = rhs
        for _ in range(self.terms):
            vector = linear(vector) + rhs
        return vector


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class OneStep(AbstractBackward):
    """Jacobian-free backpropagation: the gradient of one application of the map at the equilibrium."""

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """One step from the detached equilibrium."""
        return packed_map(z_star.detach())


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Phantom(AbstractBackward):
    """Phantom gradient: backpropagate through a few damped steps from the detached equilibrium."""

    steps: int = 5
    damping: float = 0.5

    def __post_init__(self) -> None:
        require_integer(self.steps, "steps", at_least=1)
        if not 0 < self.damping <= 1:
            raise InvalidInput(f"damping must lie in (0, 1]; got {self.damping}.")

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """The damped steps, with their graph."""
        z = z_star.detach()
        for _ in range(self.steps):
            z = (1 - self.damping) * z + self.damping * packed_map(z)
        return z


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Unrolled(AbstractBackward):
    """Backpropagate through ``steps`` Picard steps from the start: memory grows with the steps. For checking."""

    steps: int = 100

    def __post_init__(self) -> None:
        require_integer(self.steps, "steps", at_least=1)

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """The iteration itself, with its graph."""
        z = z0
        for _ in range(self.steps):
            z = packed_map(z)
        return z


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Exact(AbstractLinearBackward):
    """Solve the adjoint equation with the dense Jacobian of each sample: O(batch d^3), for tests and small d."""

    largest: int = 2000

    def solve(self, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        """Build the matrix of the linear map column by column and solve (I - A) v = rhs."""
        dim = rhs.shape[1]
        if dim > self.largest:
            raise InvalidInput(
                f"backward=Exact() is for d up to {self.largest}; the state has d = {dim}. Use Implicit()."
            )
        identity = torch.eye(dim, dtype=rhs.dtype, device=rhs.device)
        matrix = torch.stack([linear(unit.expand_as(rhs)) for unit in identity], dim=2)  # (batch, out, in)
        return torch.linalg.solve(identity - matrix, rhs.unsqueeze(-1)).squeeze(-1)
