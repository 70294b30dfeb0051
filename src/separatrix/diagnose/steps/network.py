"""A recurrent network as it stands in a model: levels of layers, one direction or both, and how it counts axes."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, require_finite, suggest_options

from .base import AbstractRecurrentMap
from .stack import StackMap


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class RecurrentNetwork:
    """Levels from the input upwards, each a layer or a forward and a backward one."""

    name: str
    levels: tuple[tuple[AbstractRecurrentMap, ...], ...]
    batch_first: bool = True
    """Whether sequences are (batch, time, features) as the model wants them, or (time, batch, features)."""
    captured: Float[Tensor, "batch t i"] | None = None
    """What entered it when the whole model was run."""

    @property
    def input_size(self) -> int:
        """Features of its input."""
        return self.levels[0][0].input_size

    def as_map(self) -> AbstractRecurrentMap:
        """All levels as one map of one state.

        Raises:
            InvalidInput: it runs in both directions; half of it has seen the future, so there is no next state.
        """
        if any(len(level) > 1 for level in self.levels):
            raise InvalidInput(
                f"{self.name or 'the network'} runs in both directions: no step takes its state to the next one. Pass "
                "one direction as a network of its own."
            )
        layers = [level[0] for level in self.levels]
        return layers[0] if len(layers) == 1 else StackMap(layers, self.name)

    def sequences(self, inputs: Tensor, name: str = "inputs") -> Float[Tensor, "batch t i"]:
        """Input sequences, batch first in float64; refused by name if they do not fit."""
        order = "(batch, time, features)" if self.batch_first else "(time, batch, features)"
        if inputs.ndim not in (2, 3) or inputs.shape[-1] != self.input_size or not inputs.numel():
            raise ShapeError(
                f"{name} must be {order} or (time, features) with {self.input_size} features; got "
                f"{tuple(inputs.shape)}."
            )
        if inputs.is_complex():
            raise InvalidInput(f"{name} must be real; got complex numbers ({inputs.dtype}).")
        wide = inputs.detach().to("cpu", torch.float64)
        require_finite(wide, name)
        if wide.ndim == 2:
            return wide.unsqueeze(0)
        return wide if self.batch_first else wide.transpose(0, 1)

    def fed(self, x: Float[Tensor, "batch t i"]) -> list[Float[Tensor, "batch t _"]]:
        """What enters each level, from what enters the first; a backward layer's output is turned round."""
        entering = [x]
        for level in self.levels[:-1]:
            outputs = []
            for number, layer in enumerate(level):
                given = entering[-1].flip(1) if number else entering[-1]
                output = run(layer, given)[:, 1:, : layer.output_size]
                outputs.append(output.flip(1) if number else output)
            entering.append(torch.cat(outputs, dim=-1))
        return entering


def run(
    layer: AbstractRecurrentMap, x: Float[Tensor, "batch t i"], start: Float[Tensor, "batch n"] | None = None
) -> Float[Tensor, "batch t_plus_1 n"]:
    """States along a sequence, the initial one first (zero if not given).

    Raises:
        InvalidInput: a state stops being finite.
    """
    state = torch.zeros(len(x), layer.state_size, dtype=torch.float64) if start is None else start
    states = [state]
    for step, now in enumerate(x.unbind(1)):
        state = layer.advance(now, state)
        if not bool(torch.isfinite(state).all()):
            raise InvalidInput(
                f"inputs must leave the state of {layer.name or layer.kind} finite; it overflows at step {step}."
            )
        states.append(state)
    return torch.stack(states, dim=1)
