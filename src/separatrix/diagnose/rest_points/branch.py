"""Follow a fixed point as the input changes: where it gains or loses stability, and where it ends."""

from __future__ import annotations

import cmath
import dataclasses
from typing import Any, TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, ShapeError, as_tensor, require_integer

from ..steps.base import AbstractRecurrentMap
from ..steps.reading import RecurrentSource
from .certificate import certify
from .newton import newton
from .search import mode_growth, the_map
from .starts import visited_states

_TOLERANCE = 1e-9
_SMALLEST = 1e-7
_LONGEST_JUMP = 0.2
"""A step of the parameter is halved if an entry of the state (over the largest, or one) moves further than this."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class InputBranch(Result):
    """A fixed point along a straight way of inputs; the parameter runs from 0 at the first input to 1 at the last."""

    parameters: Float[Tensor, " p"]
    states: Float[Tensor, "p n"]
    radius: Float[Tensor, " p"]
    """Largest modulus of an eigenvalue."""
    stable: Bool[Tensor, " p"]
    events: tuple[str, ...]
    """Where stability changes, and how the branch ends, in words."""
    event_parameters: Float[Tensor, " e"]
    complete: bool
    """Whether the branch reaches the last input; if not, the fixed point ceases to be on the way."""


_Point: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Coordinates of rest, eigenvalues, growth of their modes."""


def input_branch(module: RecurrentSource, inputs: object, state: Any, *, n_points: int = 41) -> InputBranch:
    """Continue a fixed point from one constant input to another.

    Newton's method from the point before, with steps that halve where it fails or the state would jump; a change of
    stability is located by bisection. At a fold the fixed point meets another one and both cease to be: there the
    branch ends.

    Args:
        module: as for ``fixed_points``.
        inputs: the first and the last constant input, (2, features).
        state: the fixed point at the first input, or a state near it.
        n_points: points wanted on the way, at least 2.

    Raises:
        InvalidInput: there is no fixed point near ``state`` at the first input.

    Cost: a few Newton steps and an eigenvalue problem per point.
    """
    n_points = require_integer(n_points, "n_points", at_least=2)
    ends = as_tensor(inputs, "inputs", dtype=torch.float64).detach().cpu()
    if ends.ndim != 2 or len(ends) != 2:
        raise ShapeError(f"inputs must be the first and the last input, (2, features); got {tuple(ends.shape)}.")
    layer = the_map(module, ends, state)
    if ends.shape[1] != layer.input_size:
        raise ShapeError(f"inputs must have {layer.input_size} features; got {ends.shape[1]}.")
    way = _Way(layer, ends[0], ends[1])
    first = way.settle(layer.lower(visited_states(state, layer)[:1]), 0.0, anywhere=True)
    if first is None:
        raise InvalidInput("state must be near a fixed point at the first input; Newton's method finds none from it.")
    return way.follow(first, torch.linspace(0, 1, n_points, dtype=torch.float64).tolist())


@final
@dataclasses.dataclass(frozen=True)
class _Way:
    """A network and a straight way of inputs."""

    layer: AbstractRecurrentMap
    start: Tensor
    end: Tensor

    def held(self, at: float) -> Float[Tensor, "1 i"]:
        return torch.lerp(self.start, self.end, at).unsqueeze(0)

    def settle(self, y: Float[Tensor, "1 m"], at: float, *, anywhere: bool = False) -> _Point | None:
        """The fixed point near y, if there is one and it is near."""
        x, tol = self.held(at), max(_TOLERANCE, 1e3 * self.layer.rounding)
        found = newton(self.layer, x, y, tol)
        jump = float(((found - y).abs().amax() / y.abs().amax().clamp_min(1.0)).nan_to_num(nan=torch.inf))
        if not bool(certify(self.layer, x, found).holds(tol)) or not (anywhere or jump <= _LONGEST_JUMP):
            return None
        return found, *mode_growth(self.layer, x, self.layer.lift(x, found))

    def follow(self, first: _Point, wanted: list[float]) -> InputBranch:
        points, kept = [first], [wanted[0]]
        events: list[tuple[float, str]] = []
        for target in wanted[1:]:
            reached, stopped = self._advance(points[-1], kept[-1], target, events)
            if reached is None:
                events.append((stopped, self._ending(points[-1])))
                break
            points.append(reached)
            kept.append(target)
        x = torch.cat([self.held(at) for at in kept])
        return InputBranch(
            torch.tensor(kept, dtype=torch.float64),
            self.layer.lift(x, torch.cat([point for point, _, _ in points])),
            torch.stack([values.abs().amax() for _, values, _ in points]),
            torch.stack([(growth < 0).all() for _, _, growth in points]),
            tuple(words for _, words in events),
            torch.tensor([at for at, _ in events], dtype=torch.float64),
            len(kept) == len(wanted),
        )

    def _advance(
        self, point: _Point, start: float, target: float, events: list[tuple[float, str]]
    ) -> tuple[_Point | None, float]:
        """To the target by steps that halve on failure; the point there, or None and how far it went."""
        at, step = start, target - start
        while at < target:
            after = min(target, at + step)
            reached = self.settle(point[0], after)
            if reached is None:
                step /= 2
                if step < _SMALLEST:
                    return None, at
                continue
            if _stable(point) != _stable(reached):
                events.append(self._located(point, at, after))
            point, at, step = reached, after, min(2 * step, target - start)
        return point, at

    def _located(self, point: _Point, low: float, high: float) -> tuple[float, str]:
        """Where stability changes between two parameters, and through which eigenvalue."""
        was = _stable(point)
        while high - low > _SMALLEST:
            middle = (low + high) / 2
            reached = self.settle(point[0], middle)
            if reached is None:
                break
            point, low, high = (reached, middle, high) if _stable(reached) == was else (point, low, middle)
        return low, f"{'loses' if was else 'gains'} stability through {_crossing(complex(point[1][0, 0]))}"

    def _ending(self, point: _Point) -> str:
        nearest = float((point[1] - 1).abs().amin())
        return f"the branch ends: an eigenvalue is within {nearest:.2g} of one, as at a fold"


def _crossing(value: complex) -> str:
    """In words, where an eigenvalue stands as it crosses the unit circle."""
    if abs(value.imag) > 1e-6:
        return f"a pair at angle {abs(cmath.phase(value)):.3g}"
    return "one (fold or branching)" if value.real > 0 else "minus one (period two)"


def _stable(point: _Point) -> bool:
    return bool((point[2] < 0).all())
