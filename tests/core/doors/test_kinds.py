from __future__ import annotations

import inspect

from separatrix.core.doors.kinds import hyphenated, public_kinds
from separatrix.core.errors import InvalidInput
from separatrix.dynamics import AbstractEquilibriumSolver, NewtonKrylov


def test_names_are_hyphenated_at_capitals() -> None:
    assert [hyphenated(name) for name in ("Picard", "OneStep", "DEQ")] == ["picard", "one-step", "deq"]


def test_kinds_are_the_concrete_public_classes_and_nothing_else() -> None:
    found = public_kinds("separatrix.dynamics.solve", AbstractEquilibriumSolver)
    assert found["newton-krylov"] is NewtonKrylov
    assert all(issubclass(kind, AbstractEquilibriumSolver) and not inspect.isabstract(kind) for kind in found.values())
    assert "invalid-input" not in public_kinds("separatrix.core", InvalidInput)  # the base itself is no kind
