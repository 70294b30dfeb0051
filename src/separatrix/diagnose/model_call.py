"""Calling models as they are: dictionary inputs, tuple outputs, buffers that a call changes.

Inputs are a tensor (one positional argument), a tuple or list (positional arguments) or a mapping (keyword
arguments). Outputs are a tensor, or a tuple, mapping or data class whose first floating tensor (or entry ``logits``)
is the prediction. Samples lie along the first axis of every tensor.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from separatrix.core.errors import InvalidInput
from separatrix.core.networks.modes import evaluation_mode as evaluation_mode
from separatrix.core.random import seed_global

Pick: TypeAlias = Callable[[Any], Tensor]
"""Takes a model's output and returns the tensor that is the prediction."""


def call_model(model: nn.Module, inputs: Any) -> Any:
    """The model's own output for inputs in any of the three forms."""
    args, kwargs = arguments(inputs)
    return model(*args, **kwargs)


def call_with(model: nn.Module, state: Mapping[str, Tensor], inputs: Any) -> Any:
    """The output with other parameters and buffers; the model itself stays as it is.

    Of tied parameters, which a state names several times, the first name counts.
    """
    args, kwargs = arguments(inputs)
    known = {name for name, _ in model.named_parameters()} | {name for name, _ in model.named_buffers()}
    given = {name: value for name, value in state.items() if name in known}
    return torch.func.functional_call(model, given, args, kwargs)


def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from a tensor, a sequence or a mapping."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    if isinstance(inputs, Tensor):
        return (inputs,), {}
    raise InvalidInput(
        f"inputs must be a tensor, a tuple of arguments or a dictionary of arguments; got {type(inputs).__name__}."
    )


def prediction(output: Any) -> Tensor:
    """The tensor among a model's outputs that is the prediction: ``logits`` if there is one, or the first real one.

    Tuples, lists, mappings and data classes may be nested; a lone number (a loss in front) counts only if there is
    nothing else.
    """
    if isinstance(output, Tensor):
        return output
    named = real_tensors(output)
    logits = [tensor for path, tensor in named if path and path[-1] == "logits"]
    wide = [tensor for _, tensor in named if tensor.ndim > 0]
    for found in (logits, wide, [tensor for _, tensor in named]):
        if found:
            return found[0]
    raise InvalidInput(
        f"the model returns a {type(output).__name__} without a tensor in front: pass output=, a function that "
        "takes it and returns the prediction."
    )


def real_tensors(output: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Tensor]]:
    """Every real or complex tensor of a nested output with the keys that lead to it, in order."""
    if isinstance(output, Tensor):
        return [(path, output)] if output.is_floating_point() or output.is_complex() else []
    if isinstance(output, Mapping):
        parts = [(str(key), value) for key, value in output.items()]
    elif isinstance(output, tuple | list):
        names = getattr(output, "_fields", None) or range(len(output))
        parts = [(str(key), value) for key, value in zip(names, output, strict=True)]
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        parts = [(field.name, getattr(output, field.name)) for field in dataclasses.fields(output)]
    else:
        return []
    return [found for key, value in parts for found in real_tensors(value, (*path, key))]


def with_tensor(output: Any, old: Tensor, new: Tensor) -> Any:
    """The same nested output with one of its tensors, wherever it stands, exchanged for another."""
    if output is old:
        return new
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return type(output)(*(with_tensor(value, old, new) for value in output))
    if isinstance(output, tuple | list):
        return type(output)(with_tensor(value, old, new) for value in output)
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
        return dataclasses.replace(output, **{key: with_tensor(value, old, new) for key, value in fields.items()})
    if isinstance(output, Mapping):
        return {key: with_tensor(value, old, new) for key, value in output.items()}
    return output


def n_samples(inputs: Any) -> int:
    """Length of the first axis of the first tensor among the inputs."""
    args, kwargs = arguments(inputs)
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor) and value.ndim > 0:
            return int(value.shape[0])
    raise InvalidInput("inputs must hold a tensor whose first axis counts samples.")


def take(inputs: Any, index: Any) -> Any:
    """The samples of ``index`` from inputs in the same form; tensors without a matching first axis are kept whole."""
    count = n_samples(inputs)

    def cut(value: Any) -> Any:
        return value[index] if isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == count else value

    args, kwargs = arguments(inputs)
    if isinstance(inputs, Tensor):
        return cut(inputs)
    return {name: cut(value) for name, value in kwargs.items()} if kwargs else tuple(cut(value) for value in args)


@contextlib.contextmanager
def without_trace(model: nn.Module, *, seed: int = 0) -> Iterator[None]:
    """Calls inside leave the model as it was: modes, buffers, attributes that modules rebind, and the random streams.

    The model is in evaluation mode, and random numbers it draws are those of ``seed``.
    """
    attributes = {module: dict(vars(module)) for module in model.modules()}
    buffers = {module: dict(module._buffers) for module in model.modules()}
    values = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    devices = {tensor.device for tensor in model.parameters() if tensor.is_cuda}
    with torch.random.fork_rng(devices=sorted(devices, key=str)):
        seed_global(seed)
        try:
            with evaluation_mode(model):
                yield
        finally:
            for module, before in attributes.items():
                vars(module).clear()
                vars(module).update(before)
                module._buffers.clear()
                module._buffers.update(buffers[module])
            with torch.no_grad():
                for buffer, value in values:
                    if not torch.equal(buffer, value):
                        buffer.copy_(value)


def plain_attention() -> contextlib.AbstractContextManager[None]:
    """Attention by its defining operations: the fused kernels can neither be vectorised nor differentiated twice."""
    return sdpa_kernel(SDPBackend.MATH)
