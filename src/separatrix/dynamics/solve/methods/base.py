"""What a fixed-point method must provide.

A method is a frozen dataclass that carries its own tolerances, so that a misspelt option is a ``TypeError``. The loop
in ``find_equilibrium`` evaluates the map, keeps the best iterate of every sample and decides who is finished; a method
only proposes the next point from what it has seen.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Generic, Literal, TypeAlias, TypeVar

from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.names import choose

from ..maps.absorbed import Slots
from ..maps.counted import CountedMap

States: TypeAlias = Float[Tensor, "batch d"]
SolverHistory = TypeVar("SolverHistory")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractEquilibriumSolver(abc.ABC, Generic[SolverHistory]):
    """A method for z = f(z), with its stopping rule.

    For implementers: a subclass is a ``dataclass(frozen=True, kw_only=True)`` whose own options have defaults, and
    writes two methods.

    - ``begin(fixed_point_map, z)``: an empty history for a batch z of shape (batch, d). Its type is yours; ``None`` if
      nothing is remembered. The history is the only place for what changes during a solve: one solver object serves
      many solves, also at the same time. ``fixed_point_map(z)`` evaluates the map and
      ``fixed_point_map.derivative(z, v)`` is the Jacobian times v; both are counted in the solution's ``evaluations``.
      Keep the map in the history if ``propose`` needs it.
    - ``propose(history, z, f, residual)``: the next point of every sample, a new tensor of the shape and dtype of z.
      Do not change z, f and residual in place. It is called after every evaluation but the last, without gradients.

    What every method promises (``tests/dynamics/solve/methods/test_solver_contract.py`` checks it; yours is one line):

    - Each row is treated alone; no sample may feel what else is in the batch. So select rows with ``torch.where``,
      never by multiplying with a mask.
    - Rows may hold NaN or infinity, and finished rows go on being passed in (what is proposed for them is thrown away):
      neither may raise. Of ``torch.linalg``, take the functions ending in ``_ex``.
    - No random numbers, and no Python decision that depends on one sample alone (``any_true`` of
      ``core.arithmetic.transforms`` asks for all, also inside ``torch.func.vmap``).

    ``residual_buffer`` and ``slots`` are optional: a method that keeps residuals, or images too, saves copies by saying
    where the next ones go.
    A method that checks its own options calls ``super().__post_init__()`` first.

    Args:
        tol: a sample is done when its estimated error |z - z*| is at most ``tol |z| + atol``, and its residual too. By
            default 1e-6, or a thousand times the rounding error of the map where that is more (at most 0.1).
        max_steps: steps that one sample may use; looking at the start is the first.
        stop: ``"rel"`` as above. ``"abs"`` asks for an error of at most ``tol``, whatever the size of the state.
            ``"residual"`` asks for |f(z) - z| <= tol and nothing else: no claim about the error, and no cost of one.
        divergence: a sample whose residual exceeds its first one by this factor has diverged.
        atol: absolute part of the tolerance of ``"rel"``, which decides near an equilibrium at zero. By default a
            hundredth of ``tol``, times the first residual where that is smaller than one.
    """

    tol: float | None = None
    max_steps: int = 100
    stop: Literal["abs", "rel", "residual"] = "rel"
    divergence: float = 1e8
    atol: float | None = None

    def __post_init__(self) -> None:
        if self.tol is not None:
            require_positive(self.tol, "tol")
        if self.atol is not None and self.atol != 0:
            require_positive(self.atol, "atol")
        require_integer(self.max_steps, "max_steps", at_least=1)
        require_positive(self.divergence, "divergence")
        choose("stop", self.stop, ("abs", "rel", "residual"))

    def tolerance(self, rounding: float) -> float:
        """``tol``, or what a map with this relative rounding error can reach.

        Example:
            >>> from separatrix.dynamics import Picard
            >>> Picard().tolerance(2.0**-52), Picard(tol=1e-3).tolerance(2.0**-52)
            (1e-06, 0.001)
        """
        return self.tol if self.tol is not None else min(max(1e-6, 1e3 * rounding), 0.1)

    @abc.abstractmethod
    def begin(self, fixed_point_map: CountedMap, z: States) -> SolverHistory:
        """An empty history for a batch of this shape."""

    @abc.abstractmethod
    def propose(self, history: SolverHistory, z: States, f: States, residual: States) -> States:
        """The next point of every sample from the present z, f(z) and f(z) - z; may update the history in place."""

    def residual_buffer(self, history: SolverHistory) -> Tensor | None:
        """Where the next residual is to be written, for methods that keep it; a new tensor by default."""
        return None

    def slots(self, history: SolverHistory) -> Slots | None:
        """The same for methods that keep a stack of them, or of images: asked first, None by default."""
        return None
