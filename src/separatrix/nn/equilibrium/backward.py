"""Ways to differentiate through an equilibrium, one small object each.

``Implicit`` solves the adjoint equation v = J^T v + g, so its memory does not grow with the number of solver steps.
The others are cheaper approximations or checks.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core.arithmetic.linear_systems import solve
from separatrix.core.arithmetic.transforms import any_true
from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.doors.kinds import public_kinds
from separatrix.core.errors import InvalidInput, SeparatrixError, ShapeError
from separatrix.core.names import resolve, suggest_options
from separatrix.core.outcome import Outcome
from separatrix.dynamics.solve.convergence.solution import EquilibriumSolution
from separatrix.dynamics.solve.find import solve_quietly
from separatrix.dynamics.solve.maps.counted import AffineMap
from separatrix.dynamics.solve.methods.anderson import Anderson
from separatrix.dynamics.solve.methods.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.methods.named import find_solver
from separatrix.dynamics.solve.methods.picard import Picard

from .implicit_function import PackedMap, attach_equilibrium, rounding_of

LinearSolver: TypeAlias = Callable[[PackedMap, Tensor], Tensor]
"""From an operator and a right-hand side to the solution."""
Report: TypeAlias = Callable[[EquilibriumSolution], None]
_FALLS = 0.9
"""Rate of an adjoint solve from which on a plain step further is not known to be nearer."""
_COMES_NEARER = 1e-6
"""Share of its distance that an unrolled iteration must leave behind in the second half of its steps."""
_NEAR = 1e-2
"""Distance, relative to the equilibrium, at which it need not."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractBackward(abc.ABC):
    """Turns a detached equilibrium into one that carries gradients to everything the map closes over.

    For implementers: a subclass is a ``dataclass(frozen=True, kw_only=True)`` whose options have defaults. If yours
    approximates the linear equation of the implicit function theorem, take ``AbstractLinearBackward``, which asks for
    less. Otherwise write ``attach``:

    - ``packed_map`` is the cell at a fixed input, from states (batch, d) to states (batch, d); call it as often as you
      like. It is called with gradients switched on, so what it returns carries the graph to parameters and input.
    - ``z_star`` is the equilibrium the solver found and ``z0`` its start, both (batch, d) and detached. Neither may be
      changed in place.
    - Return a tensor of the shape and dtype of ``z_star`` that has a graph. Its value should be the equilibrium, as
      closely as the solver found it: what the layer returns is this tensor.
    - Hand to ``report`` the ``EquilibriumSolution`` of every solve made while gradients are computed; without a solve,
      do not call it. ``DEQ`` keeps it as ``last_backward`` and warns or raises if it failed.

    What every method promises (checked by ``tests/nn/equilibrium/test_backward_contract.py``, where yours is one line
    with the accuracy you claim): gradients arrive at the input, at parameters of a module and at tensors in a closure;
    a sample's gradient does not depend on what else is in the batch; no random numbers.
    """

    @abc.abstractmethod
    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """The equilibrium with gradients; ``report`` receives the solution of the backward solve, if there is one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractLinearBackward(AbstractBackward):
    """Backward passes that replace the incoming gradient g by (I - J^T)^-1 g or an approximation of it.

    For implementers: write ``solve(linear, rhs, report)``, the solution v (batch, d) of v = linear(v) + rhs for every
    row on its own, where ``linear`` multiplies (batch, d) by the Jacobian's transpose and ``rhs`` is the gradient that
    arrived. The same ``solve`` with J in place of J^T gives forward-mode derivatives, and it may run inside
    ``torch.func.vmap``. Second derivatives are refused for you, unless ``second_order`` is set: then they are right as
    far as ``solve`` is.

    Args:
        second_order: keep two evaluations of the map instead of one, so that the gradient can be differentiated once
            more (``torch.autograd.grad(..., create_graph=True)``).
    """

    second_order: bool = False

    @abc.abstractmethod
    def solve(self, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        """Solve v = linear(v) + rhs for every sample."""

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """One evaluation of the map is kept; the linear equation is solved when the gradient arrives."""
        return attach_equilibrium(
            packed_map, z_star, lambda linear, rhs: self.solve(linear, rhs, report), second_order=self.second_order
        )


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Implicit(AbstractLinearBackward):
    """The implicit function theorem: v = J^T v + g by any fixed-point solver. Exact up to its tolerance.

    Args:
        solver: a solver, or the name of one, which stands for its defaults. By default Anderson, with the tolerance
            that the precision of the cell can reach (1e-6 in double, 1.2e-4 in single).
        linear_solver: instead of ``solver``, any function of an operator and a right-hand side, both on (batch, d),
            that returns v with operator(v) = rhs: a Krylov method of another library, say. What it returns is checked:
            a residual above ``check`` times the right-hand side is reported as a failure.
        check: see there; by default the tolerance of ``solver``.
    """

    solver: AbstractEquilibriumSolver[Any] | str = dataclasses.field(default_factory=lambda: Anderson(max_steps=120))
    linear_solver: LinearSolver | None = None
    check: float | None = None

    def __post_init__(self) -> None:
        find_solver(self.solver)  # a wrong name fails here, not in the first backward pass
        if self.linear_solver is not None and not callable(self.linear_solver):
            raise InvalidInput(
                f"linear_solver must be a function of an operator and a right-hand side; got {self.linear_solver!r}."
            )
        if self.check is not None:
            require_positive(self.check, "check")

    def solve(self, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        """Solve from the right-hand side; a sample that does not converge takes its best iterate.

        One that does, along steps that contract, is taken one plain step further, whose product was made already.
        """
        if self.linear_solver is not None:
            return self._solved_elsewhere(self.linear_solver, linear, rhs, report)
        images: list[Tensor] = []
        solution = solve_quietly(
            AffineMap(linear, rhs), self.solver, rhs, rounding=rounding_of(linear), on_end=images.append
        )
        report(solution)
        steady = (solution.outcome == Outcome.CONVERGED) & (solution.rate < _FALLS)
        best = solution.best
        return torch.where(steady.unsqueeze(-1), images[0].to(best.dtype), best) if images else best

    def _solved_elsewhere(self, solver: LinearSolver, linear: PackedMap, rhs: Tensor, report: Report) -> Tensor:
        with torch.no_grad():
            v = solver(lambda vector: vector - linear(vector), rhs)
        if not isinstance(v, Tensor) or v.shape != rhs.shape:
            raise ShapeError(f"linear_solver must return a tensor of shape {tuple(rhs.shape)}; it returned {v!r}.")
        share = self.check if self.check is not None else find_solver(self.solver).tolerance(rounding_of(linear))
        size = torch.linalg.vector_norm(rhs, dim=-1, keepdim=True)
        unit = torch.where(size > 0, size, 1.0)  # in units of the right-hand side the check is one number
        looked_at = AffineMap(lambda vector: linear(vector * unit) / unit, rhs / unit)
        report(solve_quietly(looked_at, Picard(tol=share, stop="residual", max_steps=1), v.to(rhs.dtype) / unit))
        return v.to(rhs.dtype)


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
    """Backpropagate through ``steps`` Picard steps from the start: memory grows with the steps. For checking.

    The value is the solver's. Where plain steps lead away from it, their derivative is not its derivative, and the pass
    raises.
    """

    steps: int = 100

    def __post_init__(self) -> None:
        require_integer(self.steps, "steps", at_least=1)

    def attach(self, packed_map: PackedMap, z_star: Tensor, z0: Tensor, report: Report) -> Tensor:
        """The solver's equilibrium with the graph of the iteration."""
        value = z_star.detach()
        z, distances = z0, [torch.linalg.vector_norm(z0.detach() - value, dim=-1)]
        step = distances[0]
        for _ in range(self.steps):
            before, z = z.detach(), packed_map(z)
            step = torch.linalg.vector_norm(z.detach() - before, dim=-1)
            distances.append(torch.linalg.vector_norm(z.detach() - value, dim=-1))
        doubtful = torch.isfinite(value).all(-1) & ~_approached(distances, torch.linalg.vector_norm(value, dim=-1))
        if any_true(doubtful):
            with torch.no_grad():
                residual = torch.linalg.vector_norm(packed_map(value) - value, dim=-1)
            doubtful = doubtful & ~_settled(distances[-1], step, residual)
        if any_true(doubtful):
            raise SeparatrixError(
                "backward=Unrolled(): plain steps lead away from the equilibrium that the solver found, so their "
                "derivative is not its derivative. Use backward=Implicit()."
            )
        return value + (z - z.detach())


def _approached(distances: Sequence[Tensor], size: Tensor) -> Tensor:
    """Mask of those who came nearer in the second half of their steps, or are near.

    The start says nothing: far away, it would excuse steps that circle around their aim, or leave it. The ends of both
    halves are compared by their largest distances: those that change sides, or spiral inward on an ellipse, are not
    equally far in every step.
    """
    last = len(distances) - 1
    half = last // 2
    then, now = (
        torch.stack(list(part)).amax(0)
        for part in (distances[half // 2 : half + 1], distances[(half + last + 1) // 2 :])
    )
    return (now < (1 - _COMES_NEARER) * then) | (distances[-1] <= _NEAR * size)


def _settled(distance: Tensor, step: Tensor, residual: Tensor) -> Tensor:
    """Mask of those who rest at least as well as the solver's answer, as far from it as its own residual explains.

    Next to an equilibrium at zero no distance is small relative to it.
    """
    return (step <= residual) & (_NEAR * distance <= residual)


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
        try:
            return solve(identity - matrix, rhs.unsqueeze(-1)).squeeze(-1)
        except torch.linalg.LinAlgError as error:
            raise SeparatrixError(
                "backward=Exact(): I - J is singular at the state of a sample, which has no gradient there: it is no "
                "equilibrium (look at last.outcome), or one of a whole line of them. Use Implicit(), which reports it."
            ) from error


def backward_methods() -> dict[str, type[AbstractBackward]]:
    """Every way to differentiate through an equilibrium, by name.

    Example:
        >>> backward_methods()["one-step"].__name__
        'OneStep'
    """
    return public_kinds("separatrix.nn.equilibrium", AbstractBackward)  # type: ignore[type-abstract]


def find_backward(given: object) -> AbstractBackward:
    """The backward method of a name, with its defaults, or the one that was given, as it is."""
    if isinstance(given, AbstractBackward):
        return given
    known = {name: kind() for name, kind in backward_methods().items()}
    return resolve("backward method", given, known, base=AbstractBackward)
