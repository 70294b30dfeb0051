"""A recurrent layer as a map of its state, and the smaller map that has the same points of rest."""

from __future__ import annotations

import abc
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.described import Described


class AbstractRecurrentMap(Described, abc.ABC):
    """``state' = advance(x, state)`` in float64, batch first; a state is one row of numbers (an LSTM's: h, then c).

    Points of rest are looked for in coordinates of their own: ``rest_map(x, y) = y`` holds exactly where
    ``advance(x, state) = state``, and it has no factor that a closed gate could make too small to see. A GRU rests
    where ``h = n(h)``, an LSTM where ``h = o tanh(i g / (1 - f))``; a step of which nothing is known rests where it
    does not move.

    For implementers: write ``advance``, ``jacobian`` and ``input_jacobian``; the rest follows.
    """

    name: str
    """Where the layer stands in its model."""
    kind: str
    """What it is, in words."""
    gated: bool = False
    """Whether gates scale the state, so that the recurrent matrices alone say nothing about stability."""
    input_size: int
    state_size: int
    output_size: int
    """The first entries of a state, which the next layer sees."""
    rounding: float = torch.finfo(torch.float64).eps
    """Relative rounding error of a step."""
    note: str = ""

    @property
    def blocks(self) -> Mapping[str, Float[Tensor, "_ _"]]:
        """Square recurrent matrices by the name of their gate; none where the layer is only known by its calls."""
        return {}

    @abc.abstractmethod
    def advance(self, x: Float[Tensor, "b i"], state: Float[Tensor, "b n"]) -> Float[Tensor, "b n"]:
        """The next state."""

    def displacement(self, x: Float[Tensor, "b i"], state: Float[Tensor, "b n"]) -> Float[Tensor, "b n"]:
        """``advance - state``, without cancellation where the layer allows it."""
        return self.advance(x, state) - state

    @abc.abstractmethod
    def jacobian(self, x: Float[Tensor, "b i"], state: Float[Tensor, "b n"]) -> Float[Tensor, "b n n"]:
        """Derivative of the next state by the state."""

    def slope(self, x: Float[Tensor, "b i"], state: Float[Tensor, "b n"]) -> Float[Tensor, "b n n"]:
        """``jacobian - 1``, without cancellation where the layer allows it; eigenvalues are one plus those of it."""
        return self.jacobian(x, state) - torch.eye(self.state_size, dtype=torch.float64)

    @abc.abstractmethod
    def input_jacobian(self, x: Float[Tensor, "b i"], state: Float[Tensor, "b n"]) -> Float[Tensor, "b n i"]:
        """Derivative of the next state by the input."""

    @property
    def rest_size(self) -> int:
        """Numbers in which a point of rest is looked for."""
        return self.state_size

    def rest_map(self, x: Float[Tensor, "b i"], y: Float[Tensor, "b m"]) -> Float[Tensor, "b m"]:
        """The map whose fixed points are those of ``advance``."""
        return self.advance(x, y)

    def rest_jacobian(self, x: Float[Tensor, "b i"], y: Float[Tensor, "b m"]) -> Float[Tensor, "b m m"]:
        """Derivative of ``rest_map`` by y."""
        return self.jacobian(x, y)

    def rest_input_jacobian(self, x: Float[Tensor, "b i"], y: Float[Tensor, "b m"]) -> Float[Tensor, "b m i"]:
        """Derivative of ``rest_map`` by the input."""
        return self.input_jacobian(x, y)

    def lower(self, state: Float[Tensor, "b n"]) -> Float[Tensor, "b m"]:
        """The coordinates of rest of a state."""
        return state

    def lift(self, x: Float[Tensor, "b i"], y: Float[Tensor, "b m"]) -> Float[Tensor, "b n"]:
        """The state of a point of rest."""
        return y

    def bounds(self, x: Float[Tensor, "b i"]) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]] | None:
        """Least and largest value that each entry can have at a point of rest; None if nothing is known."""
        return None


def unlimited(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Bounds that exclude nothing."""
    high = torch.full((len(x), size), torch.inf, dtype=torch.float64)
    return -high, high


def scaled_rows(factors: Float[Tensor, "b n"], matrix: Float[Tensor, "n m"]) -> Float[Tensor, "b n m"]:
    """diag(factors) times a matrix, for each sample."""
    return factors.unsqueeze(-1) * matrix
