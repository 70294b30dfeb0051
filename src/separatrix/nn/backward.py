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
from separatrix.core.errors import ConvergenceWarning, InvalidInput, SeparatrixError
from separatrix.dynamics.solve.anderson import Anderson
from separatrix.dynamics.solve.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.find import EquilibriumSolution, find_equilibrium

PackedMap: TypeAlias = Callable[[Tensor], Tensor]
Report: TypeAlias = Callable[[EquilibriumSolution], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractBackward(abc.ABC):
    """Turns a detached equilibrium into one that carries gradients to everything the map closes over."""

    @abc.abstractmethod
    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """The equilibrium with gradients; ``report`` receives the solution of the backward solve, if there is one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _AdjointBackward(AbstractBackward):
    """Backward passes that replace the incoming gradient g by (I - J^T)^-1 g or an approximation of it."""

    @abc.abstractmethod
    def adjoint(self, pull_back: PackedMap, gradient: Tensor, report: Report) -> Tensor:
        """The adjoint vector from vector-Jacobian products and the incoming gradient."""

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """One evaluation of the map is kept; a hook solves the adjoint equation when the gradient arrives."""
        z_in = z_star.detach().requires_grad_()
        image = packed_map(z_in)
        if not image.requires_grad:
            return z_star

        def pull_back(vector: Tensor) -> Tensor:
            (product,) = torch.autograd.grad(image, z_in, vector, retain_graph=True, allow_unused=True)
            return torch.zeros_like(z_in) if product is None else product

        def solve_adjoint(gradient: Tensor) -> Tensor:
            if torch.is_grad_enabled():  # create_graph=True: the adjoint below would silently be a constant
                raise SeparatrixError("a DEQ layer has no second derivative; use backward=Unrolled() for that.")
            return self.adjoint(pull_back, gradient, report)

        carrier = image - image.detach()  # zero, with the gradient of the image
        carrier.register_hook(solve_adjoint)  # not on the image itself: pull_back passes there and would come back here
        return z_star + carrier


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Implicit(_AdjointBackward):
    """The implicit function theorem: v = J^T v + g by any fixed-point solver. Exact up to its tolerance."""

    solver: AbstractEquilibriumSolver[Any] = dataclasses.field(default_factory=lambda: Anderson(tol=1e-6, max_steps=60))

    def adjoint(self, pull_back: PackedMap, gradient: Tensor, report: Report) -> Tensor:
        """Solve the adjoint equation, starting from the incoming gradient."""
        if not bool(torch.isfinite(gradient).all()):
            return gradient  # a NaN loss is the caller's news; solving with it would only hide where it came from
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = find_equilibrium(lambda v: pull_back(v) + gradient, self.solver, gradient, throw=False)
        report(solution)
        return solution.best


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Neumann(_AdjointBackward):
    """The first terms of the series g + J^T g + (J^T)^2 g + ...; zero terms is ``OneStep``."""

    terms: int = 5

    def __post_init__(self) -> None:
        require_integer(self.terms, "terms", at_least=0)

    def adjoint(self, pull_back: PackedMap, gradient: Tensor, report: Report) -> Tensor:
        """Sum the series by Horner's rule."""
        vector = gradient
        for _ in range(self.terms):
            vector = pull_back(vector) + gradient
        return vector


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class OneStep(AbstractBackward):
    """Jacobian-free backpropagation: the gradient of one application of the map at the equilibrium."""

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """One step from the detached equilibrium."""
        return packed_map(z_star.detach())


@final
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
@dataclasses.dataclass(frozen=True, kw_only=True)
class Exact(_AdjointBackward):
    """Solve the adjoint equation with the dense Jacobian of each sample: O(batch d^3), for tests and small d."""

    largest: int = 2000

    def adjoint(self, pull_back: PackedMap, gradient: Tensor, report: Report) -> Tensor:
        """Build J row by row from vector-Jacobian products and solve (I - J^T) v = g."""
        dim = gradient.shape[1]
        if dim > self.largest:
            raise InvalidInput(
                f"backward=Exact() is for d up to {self.largest}; the state has d = {dim}. Use Implicit()."
            )
        identity = torch.eye(dim, dtype=gradient.dtype, device=gradient.device)
        rows = [pull_back(row.expand_as(gradient)) for row in identity]
        jacobian = torch.stack(rows, dim=1)  # (batch, out, in)
        return torch.linalg.solve(identity - jacobian.mT, gradient.unsqueeze(-1)).squeeze(-1)
