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

from .maps import CountedMap

States: TypeAlias = Float[Tensor, "batch d"]
History = TypeVar("History")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AbstractEquilibriumSolver(abc.ABC, Generic[History]):
    """A method for z = f(z), with its stopping rule.

    Implementers write ``begin`` (an empty history for a batch) and ``propose`` (the next point of every sample).
    Every operation must act on each row alone: no sample may feel what else is in the batch.

    Args:
        tol: a sample is done when its residual is at most this.
        max_steps: steps that one sample may use; looking at the start is the first.
        stop: ``"rel"`` divides the residual |f(z) - z| by |f(z)|, ``"abs"`` does not.
        divergence: a sample whose residual exceeds its first one by this factor has diverged.
    """

    tol: float = 1e-6
    max_steps: int = 100
    stop: Literal["abs", "rel"] = "rel"
    divergence: float = 1e8

    def __post_init__(self) -> None:
        require_positive(self.tol, "tol")
        require_integer(self.max_steps, "max_steps", at_least=1)
        require_positive(self.divergence, "divergence")
        choose("stop", self.stop, ("abs", "rel"))

    @abc.abstractmethod
    def begin(self, fixed_point_map: CountedMap, z: States) -> History:
        """An empty history for a batch of this shape."""

    @abc.abstractmethod
    def propose(self, history: History, z: States, f: States, residual: States) -> States:
        """The next point of every sample from the present z, f(z) and f(z) - z; may update the history in place."""

    def residual_buffer(self, history: History) -> Tensor | None:
        """Where the next residual is to be written, for methods that keep it; a new tensor by default."""
        return None
