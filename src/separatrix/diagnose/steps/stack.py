"""Several recurrent layers on one another as one map: states side by side, each layer fed by the one below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from .base import AbstractRecurrentMap, unlimited


@final
class StackMap(AbstractRecurrentMap):
    """Layers in the order of the signal, whose coordinates of rest must be their outputs (as those of torch's are).

    At rest the output of a layer is what it was a step before, so the layer above may read it from the state itself;
    derivatives are block-triangular.
    """

    def __init__(self, layers: Sequence[AbstractRecurrentMap], name: str = "", note: str = "") -> None:
        self.layers, self.name, self.note = tuple(layers), name, note
        self.kind = f"{len(self.layers)} layers of {self.layers[0].kind}"
        self.gated = any(layer.gated for layer in self.layers)
        self.input_size = self.layers[0].input_size
        self.state_size = sum(layer.state_size for layer in self.layers)
        self.output_size = self.layers[-1].output_size

    @property
    def rest_size(self) -> int:
        """Of all together."""
        return sum(layer.rest_size for layer in self.layers)

    def _split(self, state: Tensor) -> tuple[Tensor, ...]:
        return state.split([layer.state_size for layer in self.layers], dim=-1)

    def _split_rest(self, y: Tensor) -> tuple[Tensor, ...]:
        return y.split([layer.rest_size for layer in self.layers], dim=-1)

    def advance(self, x: Tensor, state: Tensor) -> Tensor:
        """The next state."""
        return state + self.displacement(x, state)

    def displacement(self, x: Tensor, state: Tensor) -> Tensor:
        """Layer by layer; the layer above sees the output of this step."""
        moves = []
        for layer, own in zip(self.layers, self._split(state), strict=True):
            moves.append(layer.displacement(x, own))
            x = layer.advance(x, own)[:, : layer.output_size]
        return torch.cat(moves, dim=-1)

    def jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """Lower block-triangular, by the chain rule through the outputs."""
        return self._chain(x, state)[0] + torch.eye(self.state_size, dtype=torch.float64)

    def slope(self, x: Tensor, state: Tensor) -> Tensor:
        """Layer by layer, each without cancellation."""
        return self._chain(x, state)[0]

    def input_jacobian(self, x: Tensor, state: Tensor) -> Tensor:
        """By the input of the lowest layer."""
        return self._chain(x, state)[1]

    def _chain(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Derivatives of the next state, less one, and by the input."""
        total = state.shape[-1]
        rows, by_input, place = [], [], 0
        out_by_state: Tensor | None = None
        out_by_input: Tensor | None = None
        for layer, own in zip(self.layers, self._split(state), strict=True):
            through = layer.input_jacobian(x, own)
            row = torch.zeros(len(state), layer.state_size, total, dtype=state.dtype)
            if out_by_state is not None:
                row = through @ out_by_state
            here = slice(place, place + layer.state_size)
            row[..., here] += layer.slope(x, own)
            by_input.append(through if out_by_input is None else through @ out_by_input)
            rows.append(row)
            whole = row.clone()
            whole[..., here] += torch.eye(layer.state_size, dtype=torch.float64)
            out_by_state, out_by_input = whole[:, : layer.output_size], by_input[-1][:, : layer.output_size]
            x = layer.advance(x, own)[:, : layer.output_size]
            place = here.stop
        return torch.cat(rows, dim=-2), torch.cat(by_input, dim=-2)

    def rest_map(self, x: Tensor, y: Tensor) -> Tensor:
        """Each layer's own, fed by the coordinates of the layer below."""
        parts = self._split_rest(y)
        fed = (x, *parts[:-1])
        return torch.cat(
            [layer.rest_map(given, part) for layer, given, part in zip(self.layers, fed, parts, strict=True)], dim=-1
        )

    def rest_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Block-bidiagonal."""
        parts = self._split_rest(y)
        out = torch.zeros(len(y), y.shape[-1], y.shape[-1], dtype=y.dtype)
        place = before = 0
        for number, (layer, part) in enumerate(zip(self.layers, parts, strict=True)):
            given = x if number == 0 else parts[number - 1]
            here = slice(place, place + layer.rest_size)
            out[:, here, here] = layer.rest_jacobian(given, part)
            if number:
                out[:, here, before:place] = layer.rest_input_jacobian(given, part)
            before, place = place, here.stop
        return out

    def rest_input_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The input enters the lowest layer alone."""
        first = self._split_rest(y)[0]
        out = torch.zeros(len(y), y.shape[-1], x.shape[-1], dtype=y.dtype)
        out[:, : self.layers[0].rest_size] = self.layers[0].rest_input_jacobian(x, first)
        return out

    def lower(self, state: Tensor) -> Tensor:
        """Coordinates of all layers."""
        parts = zip(self.layers, self._split(state), strict=True)
        return torch.cat([layer.lower(own) for layer, own in parts], dim=-1)

    def lift(self, x: Tensor, y: Tensor) -> Tensor:
        """States of all layers."""
        parts = self._split_rest(y)
        fed = (x, *parts[:-1])
        return torch.cat(
            [layer.lift(given, part) for layer, given, part in zip(self.layers, fed, parts, strict=True)], dim=-1
        )

    def bounds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Of the first layer at its input; of those above only where they hold for every input."""
        found = []
        for number, layer in enumerate(self.layers):
            given = x if number == 0 else torch.zeros(len(x), layer.input_size, dtype=torch.float64)
            low, high = layer.bounds(given) or unlimited(x, layer.state_size)
            if number:  # what bounds a cell depends on its input, which is not known beforehand
                inner = torch.arange(layer.state_size) >= layer.rest_size
                low, high = low.masked_fill(inner, -torch.inf), high.masked_fill(inner, torch.inf)
            found.append((low, high))
        return torch.cat([low for low, _ in found], dim=-1), torch.cat([high for _, high in found], dim=-1)
