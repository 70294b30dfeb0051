"""The result of a search for fixed points."""

from __future__ import annotations

import dataclasses
from typing import Any, final

from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from separatrix.core import Result

from .plane import PrincipalPlane


@final
@dataclasses.dataclass(frozen=True, repr=False)
class FixedPoints(Result):
    """Certified fixed points of a recurrent network, the most stable first, and what was found beside them."""

    states: Float[Tensor, "k n"]
    inputs: Float[Tensor, "k i"]
    """The constant input at which each is one."""
    stable: Bool[Tensor, " k"]
    """Whether all eigenvalues lie inside the unit circle."""
    residual: Float[Tensor, " k"]
    """Largest change of an entry in one step, over the largest entry (or one)."""
    relative_residual: Float[Tensor, " k"]
    """The same with the factors of gates divided out."""
    error: Float[Tensor, " k"]
    """Estimated distance to the true fixed point, over the largest entry (or one)."""
    eigenvalues: Complex[Tensor, "k n"]
    """Of the Jacobian of a step, by falling modulus."""
    n_unstable: Int[Tensor, " k"]
    """Eigenvalues outside the unit circle."""
    distance: Float[Tensor, " k"]
    """To the nearest visited state, in units of the spread of the visited states."""
    n_starts: Int[Tensor, " k"]
    """How many searches ended there."""
    slow_states: Float[Tensor, "slow n"]
    """Places of least speed where the network does not rest."""
    slow_inputs: Float[Tensor, "slow i"]
    slow_speed: Float[Tensor, " slow"]
    neutral_states: Float[Tensor, "neutral n"]
    """Rest to rounding, with a direction in which nothing tells where: a continuum, or gates that are closed."""
    n_outside: int
    """Candidates outside the bounds of the state space, which cannot be fixed points."""
    n_searches: int
    """Starts times inputs, middles and descents included."""
    tolerance: float
    note: str
    plane: PrincipalPlane | None = dataclasses.field(default=None, repr=False)
    """For the drawing."""

    @property
    def time_constants(self) -> Float[Tensor, "k n"]:
        """Steps in which each mode changes by a factor e, ``1 / |ln|eigenvalue||``."""
        return self.eigenvalues.abs().log().abs().reciprocal()

    def rows(self) -> list[dict[str, Any]]:
        """A flat row for every fixed point and every slow point."""
        found = [
            {
                "kind": "stable"
                if bool(self.stable[k])
                else f"unstable in {_counted(int(self.n_unstable[k]), 'direction')}",
                "input": _numbers(self.inputs[k]),
                "largest |eigenvalue|": float(self.eigenvalues[k, 0].abs()),
                "residual": float(self.residual[k]),
                "error": float(self.error[k]),
                "distance": float(self.distance[k]),
                "starts": int(self.n_starts[k]),
            }
            for k in range(len(self.states))
        ]
        slow = [
            {
                "kind": "slow point",
                "input": _numbers(self.slow_inputs[k]),
                "largest |eigenvalue|": None,
                "residual": float(self.slow_speed[k]),
                "error": None,
                "distance": None,
                "starts": None,
            }
            for k in range(len(self.slow_states))
        ]
        return found + slow

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        words = [f"{_counted(len(self.states), 'fixed point')}, {int(self.stable.sum())} stable"]
        words += [_counted(len(self.slow_states), "slow point")] if len(self.slow_states) else []
        words += [_counted(len(self.neutral_states), "neutral point")] if len(self.neutral_states) else []
        words += [f"{_counted(self.n_outside, 'candidate')} outside the state space"] if self.n_outside else []
        return f"{', '.join(words)}, from {_counted(self.n_searches, 'search', 'es')}"

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), f"  {self.sentence}."])


def _numbers(values: Tensor) -> str:
    shown = ", ".join(f"{value:.4g}" for value in values[:6].tolist())
    return f"({shown}{', ...' if len(values) > 6 else ''})"


def _counted(number: int, word: str, ending: str = "s") -> str:
    return f"{number} {word}{'' if number == 1 else ending}"
