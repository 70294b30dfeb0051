"""From what a user has to recurrent networks: a module, a step, a state dict, a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor, nn

from separatrix.core import InvalidInput, choose

from ..weight_files import read_weights, tensors_of
from .called_step import network_of_step
from .modules import networks_of_module
from .network import RecurrentNetwork
from .packing import State
from .state_dicts import networks_of_state

RecurrentSource: TypeAlias = nn.Module | Callable[..., Any] | Mapping[str, Tensor] | str | Path
"""A module, a function ``step(x, state)``, a state dict, or a file."""


def recurrent_networks(
    source: RecurrentSource,
    inputs: object = None,
    states: State | None = None,
    *,
    nonlinearity: str = "tanh",
    whole: bool = True,
) -> list[RecurrentNetwork]:
    """The recurrent networks of a source, each with its layers as maps in double precision.

    A module of torch's own class is read by its weights, and its answer to a random sequence must agree. A module with
    a method ``step(x, state)``, a module called as ``output, h_n = module(x, h_0)``, a cell ``module(x, state)`` and a
    plain function are asked themselves; samples must not mix, and the state must be all they remember. Of any other
    module the networks of torch inside it are taken, and what reaches them when it is run on ``inputs``.

    Args:
        source: module, step, state dict, or the path of a ``.safetensors``, ``.npz`` or weights-only checkpoint file;
            nothing in a file is executed.
        inputs: a sample, which tells the number of features of a step; for a whole model, what it takes.
        states: a batch of states, needed for a function of which nothing else is known (sizes of a module's states
            are found by trial).
        nonlinearity: of plain networks in files, ``"tanh"`` or ``"relu"``.
        whole: whether ``inputs`` are for the whole model, which is then run; else for the network inside it.

    Raises:
        InvalidInput: there is no recurrent network, or it is not what it seems.
    """
    kind: Any = choose("nonlinearity", nonlinearity, ("tanh", "relu"))
    if isinstance(source, nn.Module):
        return networks_of_module(source, inputs, states, whole=whole)
    if isinstance(source, Mapping):
        return networks_of_state(tensors_of(source), kind)
    if isinstance(source, str | Path):
        return networks_of_state(read_weights(Path(source)), kind)
    if callable(source):
        return [network_of_step(source, inputs, states, getattr(source, "__name__", type(source).__name__))]
    raise InvalidInput(
        "source must be a module, a function step(x, state), a state dict or a file of weights; got "
        f"{type(source).__name__}."
    )
