"""Write parameters into a model only if its outputs stay; otherwise it is left as it was, bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.random import spawn

from ..model_call import Pick
from .certificate import run

_MARGIN = 32.0
"""How many times the effect of rounding errors a change of the outputs may be."""


def write_guarded(
    model: nn.Module, tensors: Mapping[str, Tensor], probes: Sequence[Any], output: Pick, n_steps: int = 1
) -> float:
    """Write parameters in place if no output changes by more than rounding; returns the largest relative change.

    What rounding does is measured: outputs with the new parameters, each entry changed by its last digit (times the
    ``n_steps`` in double precision that led to them). So a change is not excused because something else in the output
    is large, nor refused because the model amplifies rounding.
    The check is made twice: before anything is written, and on the model itself afterwards (parameters may share
    memory, or be kept twice). If the second one fails, the old values are put back.

    Raises:
        InvalidInput: the outputs would change, or the model's outputs differ between two equal calls.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    if any(parameters[name].is_inference() for name in tensors):
        raise InvalidInput(
            "the parameters were made in inference mode and cannot be changed: make the model outside it."
        )
    old = {name: parameters[name].detach().clone() for name in tensors}
    new = {name: tensor.to(old[name]) for name, tensor in tensors.items()}
    before = [_outputs(model, {}, inputs, output) for inputs in probes]
    again = [_outputs(model, {}, inputs, output) for inputs in probes]
    if any(not torch.equal(a, b) for x, y in zip(before, again, strict=True) for a, b in zip(x, y, strict=True)):
        raise InvalidInput(
            "the model's outputs differ between two equal calls: a change cannot be checked. It is unchanged."
        )
    after = [_outputs(model, new, inputs, output) for inputs in probes]
    noise = [_outputs(model, _last_digit(new, n_steps), inputs, output) for inputs in probes]
    _compare(before, after, noise)
    try:
        _write(parameters, new)
        return _compare(before, [_outputs(model, {}, inputs, output) for inputs in probes], noise)
    except BaseException:
        _write(parameters, old)
        raise


def _outputs(model: nn.Module, state: Mapping[str, Tensor], inputs: Any, output: Pick) -> list[Tensor]:
    buffers = {name: buffer.detach() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        return run(model, {**buffers, **state}, inputs, output)


def _last_digit(tensors: Mapping[str, Tensor], n_steps: int) -> dict[str, Tensor]:
    generator = spawn(0, "diagnose", "last digit")
    made = n_steps * torch.finfo(torch.float64).eps
    return {
        name: _disturbed(tensor, max(torch.finfo(tensor.dtype).eps, made), generator)
        for name, tensor in tensors.items()
    }


def _disturbed(tensor: Tensor, size: float, generator: torch.Generator) -> Tensor:
    signs = torch.randint(0, 2, tensor.shape, generator=generator).to(tensor) * 2 - 1
    return tensor * (1 + size * signs)


def _compare(before: list[list[Tensor]], after: list[list[Tensor]], noise: list[list[Tensor]]) -> float:
    """The largest relative change; an error if one is beyond rounding."""
    largest = 0.0
    for old, new, disturbed in zip(before, after, noise, strict=True):
        for x, y, z in zip(old, new, disturbed, strict=True):
            limits = torch.finfo(x.dtype)
            size = float(x.abs().max().clamp_min(limits.tiny))
            change, rounding = float((y - x).abs().max()) / size, float((z - y).abs().max()) / size
            allowed = min(max(_MARGIN * rounding, _MARGIN * limits.eps), limits.eps**0.5)
            if not change <= allowed:
                raise InvalidInput(
                    f"the outputs would change by {change:.1e} (rounding allows {allowed:.1e}), so a layer pair is not "
                    "what it seems, or the balance is too large for the weights' precision. The model is unchanged; "
                    "name the pairs explicitly with pairs=."
                )
            largest = max(largest, change)
    return largest


def _write(parameters: Mapping[str, nn.Parameter], tensors: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in tensors.items():
            parameters[name].copy_(tensor)
    torch.clear_autocast_cache()  # or a forward under autocast would go on with the weights it has rounded
