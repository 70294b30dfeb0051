"""Jacobians along a run, computed for many steps at once and handed out one by one."""

from __future__ import annotations

from typing import final

from jaxtyping import Float
from torch import Tensor

from ..steps.base import AbstractRecurrentMap

_ENTRIES = 8_000_000
"""Numbers held at a time, 64 MB."""


@final
class RunJacobians:
    """Derivative of the state after each step by the state before it; steps may be asked for in either direction.

    Args:
        layer: the map.
        x: inputs.
        states: what they led to, the initial state first.
    """

    def __init__(
        self,
        layer: AbstractRecurrentMap,
        x: Float[Tensor, "batch t i"],
        states: Float[Tensor, "batch t_plus_1 n"],
    ) -> None:
        self._layer, self._x, self._states = layer, x, states
        self._steps = max(1, _ENTRIES // (len(x) * layer.state_size**2))
        self._first = -1
        self._held: Tensor | None = None

    def __getitem__(self, step: int) -> Float[Tensor, "batch n n"]:
        first = step - step % self._steps
        if first != self._first:
            x = self._x[:, first : first + self._steps]
            states = self._states[:, first : first + x.shape[1]]
            rows = self._layer.jacobian(x.flatten(0, 1), states.flatten(0, 1))
            self._held = rows.unflatten(0, x.shape[:2])
            self._first = first
        assert self._held is not None
        return self._held[:, step - first]
