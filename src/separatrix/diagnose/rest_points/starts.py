"""Where a search begins and what it is held at: visited states and constant inputs, in any form people have them."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, Trace, as_tensor, require_finite, spawn

from ..steps.base import AbstractRecurrentMap
from ..steps.network import run
from ..steps.stack import StackMap

MOST_INPUTS = 64
_WANDERING = 30


def constant_inputs(inputs: object, layer: AbstractRecurrentMap) -> Float[Tensor, "k i"]:
    """The different inputs among those given, in order: one (features,), or several (..., features)."""
    given = as_tensor(inputs, "inputs", dtype=torch.float64).detach().cpu()
    if given.ndim < 1 or given.shape[-1] != layer.input_size or not given.numel():
        raise ShapeError(
            f"inputs must be one constant input ({layer.input_size},) or several (k, {layer.input_size}); got "
            f"{tuple(given.shape)}."
        )
    rows = given.reshape(-1, layer.input_size)
    different = list(dict.fromkeys(tuple(row) for row in rows.tolist()))
    if len(different) > MOST_INPUTS:
        raise InvalidInput(
            f"inputs must be at most {MOST_INPUTS} different constant inputs, since a network rests only while its "
            f"input does; got {len(different)}. Pass those that matter, or the mean."
        )
    return torch.tensor(different, dtype=torch.float64)


def visited_states(states: Any, layer: AbstractRecurrentMap) -> Float[Tensor, "s n"]:
    """States as rows, from a tensor (..., n), torch's (layers, batch, h), a tuple (h, c), or a ``Trace``."""
    if isinstance(states, Trace):
        states = states.states
    flat = _flat(states, layer)
    if flat is None:
        shapes = [tuple(part.shape) for part in _tensors(states)]
        raise ShapeError(
            f"states must have {layer.state_size} numbers on the last axis, or be torch's h_n, or a tuple (h, c) of an "
            f"LSTM; got {shapes[0] if len(shapes) == 1 else shapes}."
        )
    rows = flat.reshape(-1, layer.state_size)
    if not len(rows):
        raise InvalidInput("states must hold at least one state; got none.")
    require_finite(rows, "states")
    return rows


def _tensors(states: Any) -> list[Tensor]:
    if isinstance(states, tuple) and all(isinstance(part, Tensor) for part in states):
        return [_real(part.detach().cpu()) for part in states]
    return [_real(as_tensor(states, "states", allow_complex=True).detach().cpu())]


def _real(part: Tensor) -> Tensor:
    part = torch.view_as_real(part.resolve_conj()).flatten(-2) if part.is_complex() else part
    return part.to(torch.float64)


def _flat(states: Any, layer: AbstractRecurrentMap) -> Tensor | None:
    parts = _tensors(states)
    if len({part.shape[:-1] for part in parts}) != 1 or any(part.ndim == 0 for part in parts):
        return None
    if sum(part.shape[-1] for part in parts) == layer.state_size:
        return torch.cat(parts, dim=-1)
    layers = layer.layers if isinstance(layer, StackMap) else ()
    if not layers or parts[0].ndim != 3 or len(parts[0]) != len(layers):
        return None
    found = [torch.cat([part[number] for part in parts], dim=-1) for number in range(len(layers))]
    fits = all(rows.shape[-1] == own.state_size for rows, own in zip(found, layers, strict=True))
    return torch.cat(found, dim=-1) if fits else None


def wandering_states(layer: AbstractRecurrentMap, x: Float[Tensor, "k i"], seed: int) -> Float[Tensor, "s n"]:
    """States that the network itself reaches from random ones at each input, for users who have none to give."""
    generator = spawn(seed, "diagnose", "starts")
    size = (len(x) * 16, layer.state_size)
    first = torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1
    held = x.repeat_interleave(16, dim=0).unsqueeze(1).expand(-1, _WANDERING, -1)
    return run(layer, held, first)[:, ::3].flatten(0, 1)


def chosen(rows: Float[Tensor, "s n"], count: int, seed: int) -> Float[Tensor, "_ n"]:
    """At most ``count`` of the rows, drawn without replacement."""
    if len(rows) <= count:
        return rows
    order = torch.randperm(len(rows), generator=spawn(seed, "diagnose", "chosen"))
    return rows[order[:count].sort().values]
