"""Anybody's ``step(x, state)`` as a network: what its states look like, and in which precision it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, in_words

from .called import CalledMap, probed
from .network import RecurrentNetwork
from .packing import Packing, State

_SIZES = ("state_size", "hidden_size", "n_hidden", "hidden_dim", "n_units", "units")


def network_of_step(
    step: Callable[[Tensor, Any], Any], inputs: object, state: State | None, name: str
) -> RecurrentNetwork:
    """A network of one step; a state of a batch tells what its states look like.

    Args:
        step: a function, a module or a bound method. A module is one that was copied to double precision.
        inputs: a tensor whose last axis has the features of a step.
        state: states (batch, ...); of a module they are found by trial if none is given.
        name: for messages.
    """
    size = features(inputs, name)
    owner = step if isinstance(step, nn.Module) else getattr(step, "__self__", None)
    is_module = isinstance(owner, nn.Module)
    if state is None and isinstance(owner, nn.Module):
        state = _state_by_trial(step, owner, size)
    if state is None and is_module:
        raise InvalidInput(
            f"{name} must be a recurrent network: one of torch's, or called as output, h_n = module(x, h_0), as "
            "module(x, state) or as step(x, state). If it is one, pass states (batch, ...) to show their form."
        )
    if state is None:
        raise InvalidInput(f"{name} is known by its step alone: pass states (batch, ...), so that their form is known.")
    packing = Packing.of(state, 0, "states")
    if is_module:
        packing = packing.converted(_double)
    dtype = torch.float64 if is_module else _real(packing.dtypes[0])
    found = CalledMap(name, step, packing, size, dtype, kind="a step known by its calls")
    return RecurrentNetwork(name, ((probed(found),),))


def features(inputs: object, name: str) -> int:
    """Features of a step, the last axis of the inputs."""
    if not isinstance(inputs, Tensor) or inputs.ndim < 1:
        raise InvalidInput(f"inputs must be a tensor with the features of {name} last; got {in_words(inputs)}.")
    return int(inputs.shape[-1])


def _state_by_trial(step: Callable[[Tensor, Any], Any], owner: nn.Module, size: int) -> State | None:
    """A state of two samples that the step takes and hands back in the same shape, of the sizes the module knows."""
    x = torch.zeros(2, size, dtype=torch.float64)
    for width in dict.fromkeys(_known_sizes(owner)):
        state = torch.zeros(2, width, dtype=torch.float64)
        for trial in (state, (state, state)):
            try:
                with torch.no_grad():
                    after = step(x, trial)
            except Exception:  # not a state of this step; the next one may be
                continue
            if isinstance(after, Tensor) == isinstance(trial, Tensor) and _shapes(after) == _shapes(trial):
                return trial
    return None


def _known_sizes(owner: nn.Module) -> Iterator[int]:
    """What the module calls its size, then sides of its square matrices, then all others."""
    for word in _SIZES:
        if isinstance(number := getattr(owner, word, None), int) and number > 0:
            yield number
    shapes = [parameter.shape for parameter in (*owner.parameters(), *owner.buffers())]
    yield from (shape[0] for shape in shapes if len(shape) == 2 and shape[0] == shape[1])
    yield from sorted({side for shape in shapes for side in shape if side > 1})


def _shapes(state: Any) -> list[Any]:
    parts = [state] if isinstance(state, Tensor) else state if isinstance(state, tuple | list) else []
    return [getattr(part, "shape", None) for part in parts]


def _double(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype.is_complex else torch.float64


def _real(dtype: torch.dtype) -> torch.dtype:
    return dtype.to_real() if dtype.is_complex else dtype
