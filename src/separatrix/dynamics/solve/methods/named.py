"""Solvers by name: those that this sub-room offers."""

from __future__ import annotations

from typing import Any

from separatrix.core.doors.kinds import public_kinds
from separatrix.core.names import resolve

from .base import AbstractEquilibriumSolver


def solvers() -> dict[str, type[AbstractEquilibriumSolver[Any]]]:
    """Every solver class by name.

    Example:
        >>> solvers()["newton-krylov"].__name__
        'NewtonKrylov'
    """
    return public_kinds("separatrix.dynamics.solve.methods", AbstractEquilibriumSolver)  # type: ignore[type-abstract]


def find_solver(given: object, **options: Any) -> AbstractEquilibriumSolver[Any]:
    """The solver of a name, with these options, or the one that was given, as it is.

    Raises:
        InvalidInput: an unknown name, which gets the nearest, or something that is no solver.

    Example:
        >>> find_solver("broyden", tol=1e-8).tol
        1e-08
    """
    if isinstance(given, AbstractEquilibriumSolver):
        return given
    known = {name: kind(**options) for name, kind in solvers().items()}
    return resolve("solver", given, known, base=AbstractEquilibriumSolver)
