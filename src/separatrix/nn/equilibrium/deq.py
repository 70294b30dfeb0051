"""A deep equilibrium layer around any cell f(z, x): its output is the equilibrium z = f(z, x)."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.arrays import require_integer
from separatrix.core.errors import ConvergenceWarning, InvalidInput, NotConverged
from separatrix.core.names import choose, suggest_options
from separatrix.core.scalars import require_kind, require_number
from separatrix.dynamics.solve.convergence.solution import EquilibriumSolution
from separatrix.dynamics.solve.find import solve_quietly
from separatrix.dynamics.solve.methods.base import AbstractEquilibriumSolver
from separatrix.dynamics.solve.methods.named import find_solver
from separatrix.dynamics.spectra.lengths import length

from ..dropout import renew_masks
from .acquaintance import TWO_ANSWERS, Acquaintance
from .backward import AbstractBackward, AbstractLinearBackward, find_backward
from .closures import contains, copied, modules_used, shared, under_construction
from .guards import (
    SurveySchedule,
    not_recordable,
    outside_the_compiler,
    refused_batch_norm,
    require_gradients,
    require_no_recording,
)
from .packed_map import CellMap
from .state import State, StateLayout

_TOL = 1e-4
"""Tolerance of a solver given by name."""
_REACHED = 32
"""The same in units of rounding, where that is more."""
_OF_THE_ORIGINAL = (
    "this layer is a copy, but its cell still uses the modules of the original: a function is not always copied. Make "
    "the cell a module."
)


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
    parameters); inside them ``last`` is not kept. What is not there raises: second derivatives that were not asked for
    (``Implicit(second_order=True)``), and derivatives outside a ``vmap``. Under ``torch.compile`` the layer runs as it
    is, since its loop depends on numbers: compile the cell, ``DEQ(torch.compile(cell))``.

    A solve is examined before it counts as converged (``find_equilibrium`` says how). One part of that, the search in
    more than 16 dimensions for slow directions that nothing excites, costs about as much as a solve: a layer makes it
    at its first solve, the second, the fourth and so on, and from the 1024th on at every 1024th, in training and
    evaluation alike. Once it has refused a claim every solve makes it, until one of those that make it anyway finds
    nothing to refuse. ``last.surveyed`` says whether the last solve was one of them; ``find_equilibrium`` on the cell
    always makes it.

    Modules that a cell closes over (a bound method, a closure, a ``functools.partial``, a global name) are found: their
    parameters are the layer's, unless the layer is a part of that module itself.

    Args:
        cell: a module (or function) f(z, x) that returns a state like z: a tensor (batch, ...), a tuple or a dict
            of such tensors.
        solver: forward method with its tolerances, or its name (``"anderson"``, ``"broyden"``, ...; ``solvers()`` has
            them all), which stands for ``max_steps=50`` and ``tol=1e-4``, or more where the precision of the cell
            cannot reach that (0.1 in bfloat16, 0.03 in float16, wherever in the cell it is used).
        backward: how gradients are computed: ``Implicit()``, ``OneStep()``, ``Phantom()``, ``Neumann()``, ``Exact()``,
            ``Unrolled()``, or a name (``"implicit"``, ``"one-step"``, ...), which stands for its defaults.
        initial: the start from the input; zeros shaped like the input by default.
        on_fail: what to do when a sample does not converge, forward or backward: ``"return"`` in silence (it is
            flagged in ``last`` and ``last_backward``), ``"warn"``, or ``"raise"``.
        eval_solver: the solver in evaluation mode, where a larger budget or a tighter tolerance may be wanted.
        has_aux: the cell returns a pair (state, aux); the layer then returns the equilibrium and the aux of the cell
            there, at the cost of one more evaluation.
        indexing: steps of the solver whose states are returned too, or the number of states, spread evenly over
            ``max_steps``. The layer then returns a tuple of states, the equilibrium last. The earlier ones carry the
            gradient of one step; see ``fixed_point_correction``.

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
        solver: AbstractEquilibriumSolver[Any] | str = "anderson",
        backward: AbstractBackward | str = "implicit",
        initial: Callable[[Any], State] = zeros_like_input,
        on_fail: Literal["return", "warn", "raise"] = "warn",
        eval_solver: AbstractEquilibriumSolver[Any] | str | None = None,
        has_aux: bool = False,
        indexing: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        choose("on_fail", on_fail, ("return", "warn", "raise"))
        self.cell = cell
        self.solver = find_solver(solver, tol=_TOL, max_steps=50)
        self.eval_solver = None if eval_solver is None else find_solver(eval_solver, tol=_TOL, max_steps=50)
        self._named = (isinstance(solver, str), isinstance(eval_solver, str))
        self.backward = find_backward(backward)
        self.initial = initial
        self.on_fail = on_fail
        self.has_aux = has_aux
        self.indexing = _checked_indexing(indexing)
        self.last = None
        self.last_backward = None
        self._known = Acquaintance()
        self._surveys = SurveySchedule()
        self._uses_the_original = False
        outside = [] if isinstance(cell, nn.Module) else modules_used(cell)
        outside = [module for module in outside if not under_construction(module)]
        if outside:
            self.closed_over = nn.ModuleList(outside)

    def forward(self, x: Any, z0: State | None = None) -> Any:
        """The equilibrium for input x, from ``z0`` (a warm start) or from ``initial(x)``."""
        require_no_recording()
        return outside_the_compiler(self._equilibrium)(x, z0)

    def __prepare_scriptable__(self) -> nn.Module:
        """What ``torch.jit.script`` asks first: it cannot compile a loop of Python objects."""
        raise not_recordable()

    def _equilibrium(self, x: Any, z0: State | None) -> Any:
        start = self.initial(x) if z0 is None else z0
        layout = StateLayout.of(start)
        packed_start = layout.pack(start).detach()
        modules = self._modules_of_the_cell()
        packed_map = CellMap(self.cell, x, layout, has_aux=self.has_aux)
        renew_masks(*modules)
        with parametrize.cached(), refused_batch_norm(modules):
            self._known.make(packed_map, packed_start, modules, training=self.training)
            with self._known.drawing_refused(packed_map, packed_start, training=self.training):
                solution, earlier = self._solve(packed_map, packed_start)
            require_gradients(modules)
            z_star = solution.best
            if torch.is_grad_enabled():
                packed_map.watch()
                z_star = self.backward.attach(packed_map, z_star, packed_start, self._note_backward)
                self._look_again(packed_map, solution)
                earlier = [packed_map(z) for z in earlier]
            states = tuple(layout.unpack(z) for z in (*earlier, z_star))
            result = states if self.indexing else states[-1]
            return (result, packed_map.with_aux(z_star)[1]) if self.has_aux else result

    def _modules_of_the_cell(self) -> list[nn.Module]:
        """What the cell uses; modules that the layer holds must be among it, and must not hold the layer."""
        used = modules_used(self.cell)
        held = getattr(self, "closed_over", None)
        if held is not None:
            if any(contains(module, self) for module in used):
                self.closed_over = nn.ModuleList(module for module in held if not contains(module, self))
            elif any(all(module is not other for other in used) for module in held):
                raise InvalidInput(_OF_THE_ORIGINAL)
        if self._uses_the_original:
            raise InvalidInput(_OF_THE_ORIGINAL)
        return used

    def _solve(self, packed_map: CellMap, start: Tensor) -> tuple[EquilibriumSolution, list[Tensor]]:
        solver = self.solver if self.training or self.eval_solver is None else self.eval_solver
        if self._named[solver is self.eval_solver]:  # its tolerance is ours to choose: what the precision can reach
            solver = dataclasses.replace(solver, tol=max(_TOL, min(_REACHED * packed_map.rounding, 0.1)))
        wanted = _steps(self.indexing, solver.max_steps)
        seen: dict[int, Tensor] = {}

        def remember(step: int, z: Tensor) -> None:
            if step in wanted:
                seen[step] = z.clone()

        solution = solve_quietly(
            packed_map,
            solver,
            start,
            rounding=packed_map.rounding,
            survey=self._surveys.next(),
            on_hidden=self._surveys.note_hidden,
            on_step=remember if wanted else None,
            before_step=packed_map.record if isinstance(self.backward, AbstractLinearBackward) else None,
        )
        # tensors of a transform do not outlive it
        self.last = None if transforms_active() else solution
        self.last_backward = None
        self._judge(solution, "forward")
        return solution, [seen.get(step, solution.best) for step in wanted]

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

    def _look_again(self, packed_map: CellMap, solution: EquilibriumSolution) -> None:
        """In training, whether the cell still answers at the equilibrium as it did to the solver: at no cost."""
        if not self.training or transforms_active() or packed_map.watched is None:
            return
        z, image = packed_map.watched
        if not torch.equal(z, solution.best):
            return
        residual, scale = length(image - z), length(image)
        differs = (residual - solution.residual).abs() > 0.5 * solution.residual + 10 * packed_map.rounding * scale
        if bool((differs & torch.isfinite(residual)).any()):
            raise InvalidInput(TWO_ANSWERS)

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: everything but the last solutions."""
        return {**self.__dict__, "last": None, "last_backward": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> DEQ:
        """A copy whose functions use the weights of the copy."""
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        state = self.__getstate__()
        functions = {name: state.pop(name) for name in ("cell", "initial") if name in state}
        twin.__setstate__({name: copied(part, memo) for name, part in functions.items()} | copy.deepcopy(state, memo))
        twin._uses_the_original = any(shared(part, getattr(twin, name)) for name, part in functions.items())
        return twin

    def _replicate_for_data_parallel(self) -> DEQ:
        """What ``torch.nn.DataParallel`` makes of the layer on each device: modules are replaced, functions are not."""
        if not isinstance(self.cell, nn.Module) and modules_used(self.cell):
            raise InvalidInput(
                "torch.nn.DataParallel cannot replicate this layer: its cell is a function, which would use the "
                "weights of the first device everywhere. Make the cell a module, or use DistributedDataParallel."
            )
        replica: DEQ = super()._replicate_for_data_parallel()
        return replica

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"solver={self.solver}, backward={self.backward}"


def _checked_indexing(indexing: int | Sequence[int] | None) -> int | tuple[int, ...] | None:
    if indexing is None or isinstance(indexing, int):
        return indexing if indexing is None else require_integer(indexing, "indexing", at_least=1)
    return tuple(sorted({require_integer(step, "indexing", at_least=1) for step in indexing}))


def _steps(indexing: int | tuple[int, ...] | None, max_steps: int) -> tuple[int, ...]:
    """The steps before the last state that are wanted."""
    if isinstance(indexing, int):
        return tuple(max(1, round(max_steps * k / indexing)) for k in range(1, indexing))
    return indexing or ()


def fixed_point_correction(
    loss_of: Callable[[State], Tensor], states: Sequence[State], *, decay: float = 0.8
) -> Float[Tensor, ""]:
    """The loss of the equilibrium plus that of earlier states of the solve, which weigh less the earlier they are.

    Trains the solve to pass near good states before its end (Bai, Koltun and Kolter, Neural Deep Equilibrium Solvers
    and Deep Equilibrium Optical Flow Estimation, 2022). ``states`` is what a layer with ``indexing`` returns.

    Args:
        loss_of: the loss of one state.
        states: in the order of the steps, the equilibrium last.
        decay: weight of a state relative to the next one.

    Example:
        >>> layer = DEQ(lambda z, x: 0.5 * z + x, indexing=3)
        >>> float(fixed_point_correction(lambda z: z.square().mean(), layer(torch.ones(2, 3)))) > 4
        True
    """
    if not states:
        raise InvalidInput("states must hold at least one state, as a layer with indexing returns them.")
    require_number(decay, "decay", at_least=0, at_most=1, rule="a number that lies in [0, 1]")
    for state in states:
        require_kind(state, "each of states", torch.Tensor, "a state (a tensor), as a layer with indexing returns them")
    weights = [decay ** (len(states) - 1 - k) for k in range(len(states))]
    return torch.stack([weight * loss_of(state) for weight, state in zip(weights, states, strict=True)]).sum()
