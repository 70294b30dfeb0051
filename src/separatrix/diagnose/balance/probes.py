"""Inputs to run a model on when its function is to be checked: the user's own, or made up where its signature allows.

Inputs are made up only for a model whose ``forward`` takes exactly one argument (or that is a module of torch's own):
an optional argument may change the function (a rotary table, a flag), and leaving it out would check another model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.random import spawn

from ..model_call import call_model, without_trace

_BATCH, _TOKENS = 3, 5
_SIDES = (8, 16, 28, 32, 64)
"""Heights and widths that are tried for images."""
_SCALES = (1.0, 4.0, 0.3)
"""Sizes of made-up inputs: one typical, one that saturates, one nearly linear."""


def probe_inputs(model: nn.Module, example_inputs: Any = None) -> list[Any]:
    """Inputs on which a model runs, several of different size.

    Args:
        model: any model; unchanged.
        example_inputs: a batch in any form that a call of the model takes; its floating entries are also varied.

    Raises:
        InvalidInput: the model does not run on ``example_inputs``, or none were given and none could be made up.

    Cost: a few forward calls.
    """
    generator = spawn(0, "diagnose", "probe inputs")
    if example_inputs is not None:
        problem = _problem(model, example_inputs)
        if problem:
            raise InvalidInput(f"the model must run on example_inputs with a finite output; {problem}.")
        varied = map_tensors(example_inputs, lambda value: _varied(value, generator))
        return [example_inputs] + ([varied] if not _problem(model, varied) else [])
    obstacle = _obstacle(model)
    if obstacle:
        raise InvalidInput(
            f"the model must be run to check it, and {obstacle}: pass example_inputs=, a batch it takes."
        )
    for make in _candidates(model):  # the first shape that fits; others may run and mean nothing (units for tokens)
        found = [inputs for inputs in (make(scale) for scale in _SCALES) if not _problem(model, inputs)]
        if found:
            return found
    raise InvalidInput(
        f"the model must be run to check it, and no made-up input fits {type(model).__name__}: "
        "pass example_inputs=, a batch it takes."
    )


def map_tensors(inputs: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The same nest of tuples, lists and mappings with every tensor replaced."""
    if isinstance(inputs, Tensor):
        return function(inputs)
    if isinstance(inputs, Mapping):
        return {name: map_tensors(value, function) for name, value in inputs.items()}
    if isinstance(inputs, list | tuple):
        return (
            type(inputs)(map_tensors(value, function) for value in inputs) if type(inputs) in (list, tuple) else inputs
        )
    return inputs


def float_tensors(value: Any) -> list[Tensor]:
    """All floating and complex tensors in a model's output, complex ones as pairs of real numbers."""
    if isinstance(value, Tensor):
        value = torch.view_as_real(value) if value.is_complex() else value
        return [value] if value.is_floating_point() and value.numel() else []
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return [tensor for item in value for tensor in float_tensors(item)] if isinstance(value, list | tuple) else []


def _varied(value: Tensor, generator: torch.Generator) -> Tensor:
    if not value.is_floating_point() or not value.numel():
        return value
    noise = torch.randn(value.shape, generator=generator).to(value)
    return 2.5 * value + 0.3 * value.detach().square().mean().sqrt() * noise


def _problem(model: nn.Module, inputs: Any) -> str:
    """Why a model does not run on these inputs; empty if it does."""
    try:
        with torch.no_grad(), without_trace(model):
            outputs = float_tensors(call_model(model, inputs))
    except InvalidInput as error:
        return str(error).rstrip(".")
    except Exception as error:  # whatever a stranger's model raises on inputs it does not take
        return f"it raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if not outputs:
        return "it returns no floating tensor"
    return "" if all(bool(output.isfinite().all()) for output in outputs) else "its output is not finite"


def _obstacle(model: nn.Module) -> str:
    """Why no input may be made up for a model; empty if one may."""
    parameters = list(inspect.signature(model.forward).parameters.values())
    if _is_torchs(model):
        return ""
    if type(model).forward is getattr(nn.Module, "forward", None):
        return f"{type(model).__name__} has no forward of its own"
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) == 1 and parameters[0].kind in plain and parameters[0].default is inspect.Parameter.empty:
        return ""
    names = ", ".join(str(parameter).split(":")[0] for parameter in parameters)
    return f"{type(model).__name__}.forward({names}) takes more than one argument to be made up"


def _is_torchs(model: nn.Module) -> bool:
    return type(model).__module__.startswith("torch.nn.modules")


def _candidates(model: nn.Module) -> Iterator[Callable[[float], Any]]:
    """Makers of inputs by the first layers of the model, most telling first."""
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    like = torch.empty(0) if parameter is None else parameter.detach()
    required = [
        p
        for p in inspect.signature(model.forward).parameters.values()
        if p.default is inspect.Parameter.empty and p.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    for shape, n_classes in dict.fromkeys(_shapes(model)):

        def make(scale: float, shape: tuple[int, ...] = shape, n_classes: int = n_classes) -> Any:
            generator = spawn(0, "diagnose", "made-up inputs", int(100 * scale))
            if n_classes:
                value = torch.randint(n_classes, shape, generator=generator).to(like.device)
            else:
                value = (scale * torch.randn(shape, generator=generator)).to(like)
            return tuple(value for _ in required)

        yield make


def _shapes(model: nn.Module) -> Iterator[tuple[tuple[int, ...], int]]:
    """Shapes of inputs by the layers in the order they are registered, with the number of classes of token numbers."""
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            yield (_BATCH, _TOKENS), module.num_embeddings
        elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            dims = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
            axes = next(count for kind, count in dims.items() if isinstance(module, kind))
            for side in _SIDES:
                yield (_BATCH, module.in_channels, *[side] * axes), 0
        else:
            width = _width(module)
            if width:
                yield (_BATCH, _TOKENS, width), 0
                yield (_BATCH, width), 0


def _width(module: nn.Module) -> int:
    """Number of features a module reads, 0 if it does not say."""
    for name in ("in_features", "embed_dim", "input_size", "num_features"):
        value = getattr(module, name, None)
        if isinstance(value, int) and value > 0:
            return value
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return int(module.normalized_shape[-1])
    weight = getattr(module, "weight", None)
    return int(weight.shape[0]) if type(module).__name__ == "Conv1D" and isinstance(weight, Tensor) else 0
