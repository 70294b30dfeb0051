"""A deep equilibrium layer around any cell f(z, x): its output is the equilibrium z = f(z, x)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.errors import ConvergenceWarning, InvalidInput, NotConverged
from separatrix.core.names import choose, suggest_options
from separatrix.core.transforms import transforms_active
from separatrix.dynamics.solve.anderson import Anderson
from separatrix.dynamics.solve.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.find import find_equilibrium
from separatrix.dynamics.solve.solution import EquilibriumSolution

from ..dropout import renew_masks
from .backward import AbstractBackward, Implicit
from .implicit_function import PackedMap
from .state import State, StateLayout


def zeros_like_input(x: Any) -> Tensor:
    """The default start: a state of zeros shaped like the input."""
    if not isinstance(x, Tensor):
        raise InvalidInput(
            f"initial must be given when the input is not a tensor; got {type(x).__name__}. "
            "Pass initial=, a function from the input to the start."
        )
    return torch.zeros_like(x)


@suggest_options
class DEQ(nn.Module):
    """The equilibrium of a cell, as an ordinary torch module.

    Memory in training does not grow with the number of solver steps (with ``Implicit``): one evaluation of the cell is
    kept. Samples that did not converge return their best iterate and are flagged in ``last``; their gradient is not
    the gradient of anything, so watch ``last.n_failed``. Parametrised weights (weight norm, spectral bounds) are
    computed once a call; ``VariationalDropout`` inside the cell draws one mask a call. Works with ``torch.func``:
    ``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd`` and ``vmap`` around them (gradients per sample, ensembles of
    parameters); inside them ``last`` is not kept. What is not there raises: second derivatives, and derivatives
    outside a ``vmap``.

    Args:
        cell: a module (or function) f(z, x) that returns a state like z: a tensor (batch, ...), a tuple or a dict
            of such tensors.
        solver: forward method with its tolerances; ``Anderson(tol=1e-4, max_steps=50)`` by default.
        backward: how gradients are computed: ``Implicit()``, ``OneStep()``, ``Phantom()``, ``Neumann()``, ``Exact()``
            or ``Unrolled()``.
        initial: the start from the input; zeros shaped like the input by default.
        on_fail: what to do when a sample does not converge, forward or backward: ``"return"`` in silence (it is
            flagged in ``last`` and ``last_backward``), ``"warn"``, or ``"raise"``.

    Example:
        >>> layer = DEQ(lambda z, x: 0.5 * torch.tanh(z) + x)
        >>> z = layer(torch.ones(2, 3))
        >>> bool((z - (0.5 * torch.tanh(z) + 1)).abs().max() < 1e-3)
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
        choose("on_fail", on_fail, ("return", "warn", "raise"))
        _require_kind(solver, AbstractEquilibriumSolver, "solver", "Anderson()")
        _require_kind(backward, AbstractBackward, "backward", "Implicit()")
        self.cell = cell
        self.solver = solver if solver is not None else Anderson(tol=1e-4, max_steps=50)
        self.backward = backward if backward is not None else Implicit()
        self.initial = initial
        self.on_fail = on_fail
        self.last = None
        self.last_backward = None
        self._known_deterministic = False

    def forward(self, x: Any, z0: State | None = None) -> State:
        """The equilibrium for input x, from ``z0`` (a warm start) or from ``initial(x)``."""
        start = self.initial(x) if z0 is None else z0
        layout = StateLayout.of(start)
        packed_start = layout.pack(start).detach()

        def packed_map(z: Tensor) -> Tensor:
            return layout.pack(self.cell(layout.unpack(z), x))

        renew_masks(self)
        with parametrize.cached():
            _compute_parametrised(self)
            self._require_a_map(packed_map, packed_start)
            solution = self._solve(packed_map, packed_start)
            z_star = solution.best
            if torch.is_grad_enabled():
                z_star = self.backward.attach(packed_map, z_star, packed_start, self._note_backward)
        return layout.unpack(z_star)

    def _solve(self, packed_map: PackedMap, start: Tensor) -> EquilibriumSolution:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = find_equilibrium(packed_map, self.solver, start, throw=False)
        # tensors of a transform do not outlive it
        self.last = None if transforms_active() else solution
        self.last_backward = None
        self._judge(solution, "forward")
        return solution

    def _note_backward(self, solution: EquilibriumSolution) -> None:
        self.last_backward = None if transforms_active() else solution
        self._judge(solution, "backward")

    def _judge(self, solution: EquilibriumSolution, direction: str) -> None:
        if self.on_fail == "return" or solution.ok:
            return
        message = f"{direction} pass: {solution.failure_message()}"
        if self.on_fail == "raise":
            raise NotConverged(message, solution)
        warnings.warn(message, ConvergenceWarning, stacklevel=4)

    @torch.no_grad()
    def _require_a_map(self, packed_map: PackedMap, z: Tensor) -> None:
        """Refuse, at the first call in training mode, a cell that gives two answers to one question."""
        if self._known_deterministic or not self.training or transforms_active():
            return
        first, second = packed_map(z), packed_map(z)
        scale = float(first.abs().nan_to_num().mean()) if first.numel() else 0.0
        if not torch.allclose(first, second, rtol=1e-2, atol=1e-2 * scale, equal_nan=True):
            raise InvalidInput(
                "the cell gave two different results for the same state and input, so it has no equilibrium; it "
                "probably contains nn.Dropout. Use separatrix.nn.VariationalDropout, which keeps one mask per solve."
            )
        self._known_deterministic = True

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: everything but the last solutions."""
        return {**self.__dict__, "last": None, "last_backward": None}

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"solver={self.solver}, backward={self.backward}"


def _require_kind(value: Any, kind: type, name: str, example: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidInput(f"{name} must be an object such as {example}; got {value!r}.")


def _compute_parametrised(module: nn.Module) -> None:
    """Fill the cache of parametrised weights now, with gradients: the first use would be inside the solver, without."""
    for part in module.modules():
        for name in getattr(part, "parametrizations", {}):
            getattr(part, name)
