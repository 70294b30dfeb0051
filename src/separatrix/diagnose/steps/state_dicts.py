"""Recurrent layers of a state dict, found by torch's names and by the shapes of their matrices."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Literal

from torch import Tensor

from separatrix.core import InvalidInput

from .base import AbstractRecurrentMap
from .gru import GruMap
from .lstm import LstmMap
from .network import RecurrentNetwork
from .plain import PlainMap
from .weights import LayerWeights, layer_weights

_NAME = re.compile(r"^(?P<prefix>.*?)(?P<key>(?:weight|bias)_(?:ih|hh|hr))(?:_l(?P<level>\d+)(?P<back>_reverse)?)?$")
_FROM_FILE = "a file does not tell the nonlinearity: {} is taken (nonlinearity=)"


def networks_of_state(
    state: Mapping[str, Tensor], nonlinearity: Literal["tanh", "relu"] = "tanh", *, told: bool = False
) -> list[RecurrentNetwork]:
    """Every recurrent network of a state dict, in the order of its names.

    Args:
        state: tensors by name.
        nonlinearity: of plain networks, which their tensors do not tell.
        told: whether it is known rather than taken.

    Raises:
        InvalidInput: there is none (the message names tensors that look like one), or its tensors do not fit.
    """
    groups: dict[str, dict[tuple[int, int], dict[str, Tensor]]] = {}
    for name, tensor in state.items():
        if found := _NAME.match(name):
            place = (int(found["level"] or 0), 1 if found["back"] else 0)
            groups.setdefault(found["prefix"], {}).setdefault(place, {})[found["key"]] = tensor
    if not groups:
        raise InvalidInput(
            "source must hold recurrent weights under torch's names (weight_ih, weight_hh, with or without _l0); none "
            f"was found{_lookalikes(state)}."
        )
    return [_network(prefix.rstrip("."), parts, nonlinearity, told) for prefix, parts in groups.items()]


def layer_of_weights(
    name: str, weights: LayerWeights, nonlinearity: Literal["tanh", "relu"], *, told: bool
) -> AbstractRecurrentMap:
    """The layer by the number of its gates: 1, 3 or 4."""
    if weights.n_gates == 4:
        return LstmMap(name, weights)
    if weights.n_gates == 3 and weights.weight_hr is None:
        return GruMap(name, weights)
    if weights.n_gates == 1 and weights.weight_hr is None:
        return PlainMap(name, weights, nonlinearity, "" if told else _FROM_FILE.format(nonlinearity))
    raise InvalidInput(
        f"{name or 'source'}: weight_hh must have 1, 3 or 4 times as many rows as units (RNN, GRU, LSTM); got "
        f"{weights.n_gates} times."
    )


def _network(
    prefix: str,
    parts: dict[tuple[int, int], dict[str, Tensor]],
    nonlinearity: Literal["tanh", "relu"],
    told: bool,
) -> RecurrentNetwork:
    depth = 1 + max(level for level, _ in parts)
    directions = 1 + max(back for _, back in parts)
    levels = []
    for level in range(depth):
        row = []
        for back in range(directions):
            own = f"l{level}{' backward' if back else ''}" if depth > 1 or directions > 1 else ""
            name = ".".join(part for part in (prefix, own) if part)
            if (level, back) not in parts:
                raise InvalidInput(f"source has no weights for the layer {name!r}, but for others beside it.")
            row.append(layer_of_weights(name, layer_weights(parts[level, back], name), nonlinearity, told=told))
        levels.append(tuple(row))
    for below, above in itertools.pairwise(levels):
        given = sum(layer.output_size for layer in below)
        if above[0].input_size != given:
            raise InvalidInput(f"{above[0].name} takes {above[0].input_size} features; the level below gives {given}.")
    return RecurrentNetwork(prefix, tuple(levels))


def _lookalikes(state: Mapping[str, Tensor]) -> str:
    """Names of matrices whose shape is that of recurrent gates, for a message."""
    names = [
        f"{name} {tuple(tensor.shape)}"
        for name, tensor in state.items()
        if tensor.ndim == 2 and tensor.shape[1] and tensor.shape[0] in (3 * tensor.shape[1], 4 * tensor.shape[1])
    ]
    if not names:
        return ""
    return f" (by their shape these may be recurrent: {', '.join(names[:3])}; rename them, or pass step(x, state))"
