"""A deep equilibrium layer around any cell f(z, x): its output is the equilibrium z = f(z, x)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from separatrix.core.errors import ConvergenceWarning, InvalidInput, NotConverged
from separatrix.dynamics.solve.anderson import Anderson
from separatrix.dynamics.solve.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.find import EquilibriumSolution, find_equilibrium

from .backward import AbstractBackward, Implicit
from .state import State, StateLayout


def zeros_like_input(x: Tensor) -> Tensor:
    """The default start: a state of zeros shaped like the input."""
    return torch.zeros_like(x)


class DEQ(nn.Module):
    """The equilibrium of a cell, as an ordinary torch module.

    Memory in training does not grow with the number of solver steps (with ``Implicit``): one evaluation of the cell is
    kept. Samples that did not converge return their best iterate and are flagged in ``last``; their gradient is not
    the gradient of anything, so watch ``last.n_failed``.

    Args:
        cell: a module (or function) f(z, x) that returns a state like z: a tensor (batch, ...), a tuple or a dict
            of such tensors.
        solver: forward method with its tolerances.
        backward: how gradients are computed: ``Implicit()``, ``OneStep()``, ``Phantom()``, ``Neumann()``, ``Exact()``
            or ``Unrolled()``.
        initial: the start from the input; zeros shaped like the input by default.
        on_fail: what to do when a sample does not converge: ``"return"`` in silence (it is flagged in ``last``),
            ``"warn"``, or ``"raise"``.

    Example:
        >>> layer = DEQ(lambda z, x: 0.5 * torch.tanh(z) + x)
        >>> z = layer(torch.ones(2, 3))
        >>> bool((z - (0.5 * torch.tanh(z) + 1)).abs().max() < 1e-4)
        True
    """

    last: EquilibriumSolution | None
    """The solution of the last forward pass."""
    last_backward: EquilibriumSolution | None
    """The solution of the last backward pass, where the backward method solves for one."""

    def __init__(
        self,
        cell: nn.Module | Callable[[Any, Any], Any],
        *,
        solver: AbstractEquilibriumSolver[Any] | None = None,
        backward: AbstractBackward | None = None,
        initial: Callable[[Any], State] = zeros_like_input,
        on_fail: Literal["return", "warn", "raise"] = "warn",
    ) -> None:
        super().__init__()
        if on_fail not in ("return", "warn", "raise"):
            raise InvalidInput(f"on_fail must be 'return', 'warn' or 'raise'; got {on_fail!r}.")
        self.cell = cell
        self.solver = solver if solver is not None else Anderson(tol=1e-4, max_steps=50)
        self.backward = backward if backward is not None else Implicit()
        self.initial = initial
        self.on_fail = on_fail
        self.last = None
        self.last_backward = None

    def forward(self, x: Any, z0: State | None = None) -> State:
        """The equilibrium for input x, from ``z0`` (a warm start) or from ``initial(x)``."""
        start = self.initial(x) if z0 is None else z0
        layout = StateLayout.of(start)
        packed_start = layout.pack(start)

        def packed_map(z: Tensor) -> Tensor:
            return layout.pack(self.cell(layout.unpack(z), x))

        self.last = self._solve(packed_map, packed_start)
        self.last_backward = None
        if not torch.is_grad_enabled():
            return layout.unpack(self.last.best)
        return layout.unpack(self.backward.attach(packed_map, self.last.best, packed_start, self._note_backward))

    def _solve(self, packed_map: Callable[[Tensor], Tensor], start: Tensor) -> EquilibriumSolution:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = find_equilibrium(packed_map, self.solver, start, throw=False)
        if not solution.ok and self.on_fail == "raise":
            raise NotConverged(solution.failure_message(), solution)
        if not solution.ok and self.on_fail == "warn":
            warnings.warn(solution.failure_message(), ConvergenceWarning, stacklevel=3)
        return solution

    def _note_backward(self, solution: EquilibriumSolution) -> None:
        self.last_backward = solution
