r"""Is a law true of this model? Checked by running it, whatever its layers are called.

A law is a symmetry of the function: moving weight from one side of a pair to the other changes no output. To first
order that is an identity between gradients of any output. With rows A, B of the two sides and gradients G of a random
combination of the outputs,

.. math:: G_A A^\top = B\, G_B^\top \ \text{(linear units)}, \qquad
   \langle G_A, A\rangle_i = p\, \langle G_B, B\rangle_i \ \text{(homogeneous units of degree p)} .

The residual of that identity, over several inputs and over several points in weight space, is the certificate. Points
near the given weights are used as well as the weights themselves: at a start with zeros (adapters, gates) an identity
may hold by accident that training breaks at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.random import spawn

from ..model_call import Pick, arguments, plain_attention, prediction, without_trace
from .pairs.laws import HOLDS_BELOW, Law, LayerPair, rotation_blocks
from .probes import float_tensors, map_tensors, probe_inputs

UP_TO_EPS = 1e-2
"""Residual below which the law of a normalised layer is said to hold: it is exact only without the norm's own eps."""
_JITTER = 0.1
_FROM_ZERO = 0.05
_COARSE = (torch.float16, torch.bfloat16)

State: TypeAlias = dict[str, Tensor]
Measure: TypeAlias = Callable[[LayerPair, Mapping[str, Tensor], Mapping[str, Tensor]], float]


@final
@dataclasses.dataclass(frozen=True)
class _Point:
    """Parameters, buffers and inputs, all of one precision, at which gradients are taken."""

    parameters: State
    buffers: State
    inputs: Any


def certify(
    model: nn.Module,
    pairs: Sequence[LayerPair],
    example_inputs: Any = None,
    *,
    output: Pick = prediction,
) -> tuple[LayerPair, ...]:
    """The same pairs, each with the strongest law that was found true and its measured residual.

    Args:
        model: any model; unchanged, with its buffers, modes and random streams.
        pairs: pairs with the law that is expected of them.
        example_inputs: a batch the model takes; without it inputs are made up where its signature allows.
        output: takes the model's output and returns the tensor that counts; by default every floating tensor does.

    Returns:
        A pair whose expected law fails gets a weaker one that holds (full matrix, diagonal, trace of rotation pairs),
        or ``NOTHING`` with the measured residual as its reason. A pair that no probe reaches keeps its law with
        ``residual`` NaN and the reason in ``unchecked``; so does every pair if the model cannot be run or
        differentiated.

    Cost: four to twelve forward and backward passes in double precision.
    """
    claimed = [pair for pair in pairs if pair.law is not Law.NOTHING]
    if not claimed:
        return tuple(pairs)
    try:
        probes = probe_inputs(model, example_inputs)
        found: dict[str, LayerPair] = {}
        for batch_statistics in (False, True):
            chosen = [pair for pair in claimed if pair.of_batch == batch_statistics]
            if chosen:
                found |= _settle(model, chosen, probes, output, batch_statistics)
    except InvalidInput as error:
        if example_inputs is not None:
            raise
        reason = str(error).rstrip(".")
        found = {pair.name: dataclasses.replace(pair, unchecked=reason) for pair in claimed}
    return tuple(found.get(pair.name, pair) for pair in pairs)


def _settle(
    model: nn.Module, pairs: Sequence[LayerPair], probes: Sequence[Any], output: Pick, batch_statistics: bool
) -> dict[str, LayerPair]:
    ladders = {pair.name: _ladder(pair) for pair in pairs}
    worst = {name: [float("nan")] * len(ladder) for name, ladder in ladders.items()}
    try:
        for point, gradients in _gradients(model, probes, output, batch_statistics):
            for name, ladder in ladders.items():
                for rung, pair in enumerate(ladder):
                    residual = _residual(pair, gradients, point.parameters)
                    if not math.isnan(residual):
                        worst[name][rung] = max(residual, worst[name][rung] if worst[name][rung] >= 0 else residual)
    except _NotDifferentiable as error:
        return {pair.name: dataclasses.replace(pair, unchecked=str(error)) for pair in pairs}
    return {name: _strongest(ladder, worst[name]) for name, ladder in ladders.items()}


def _strongest(ladder: list[LayerPair], residuals: list[float]) -> LayerPair:
    for pair, residual in zip(ladder, residuals, strict=True):
        if residual <= _tolerance(pair):
            return dataclasses.replace(pair, residual=residual)
    expected, residual = ladder[0], residuals[0]
    if math.isnan(residual):
        return dataclasses.replace(expected, unchecked="no probe input reaches it: pass example_inputs= that do")
    reason = f"run on probe inputs, its function does not have the symmetry of the {expected.law.label} law"
    return dataclasses.replace(
        expected, law=Law.NOTHING, residual=residual, reason=f"{reason} (residual {residual:.1g})"
    )


def _tolerance(pair: LayerPair) -> float:
    return UP_TO_EPS if pair.law in (Law.NORM, Law.NORM_PER_NEURON) else HOLDS_BELOW


def _ladder(pair: LayerPair) -> list[LayerPair]:
    """The expected law and the weaker ones, strongest first."""
    turns = [
        dataclasses.replace(pair, law=Law.ROTATION_PAIRS, rotation=rotation)
        for rotation in ("half", "interleaved")
        if pair.n_hidden % 2 == 0
    ]
    if pair.law is Law.FULL:
        return [pair, dataclasses.replace(pair, law=Law.DIAGONAL), *turns]
    if pair.law is Law.DIAGONAL:
        return [pair, *turns]
    if pair.law is Law.ROTATION_PAIRS:
        return [pair, *[turn for turn in turns if turn.rotation != pair.rotation]]
    return [pair]


def _residual(pair: LayerPair, gradients: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> float:
    """How far the identity of a law is from true, relative to its sides; NaN where both sides vanish."""
    second = pair.second.read(gradients), pair.second.read(values)
    size = second[0].norm() * second[1].norm()
    if pair.first is None:
        moved = _shares(pair, *second)
        whole = size if pair.law is Law.NORM else (second[0].norm(dim=1) * second[1].norm(dim=1)).norm()
        return _ratio(moved.norm(), whole, torch.zeros_like(whole))
    first = pair.first.read(gradients), pair.first.read(values)
    size = size + first[0].norm() * first[1].norm()
    if pair.law is Law.FULL:
        left, right = first[0] @ first[1].mT, second[1] @ second[0].mT
    else:
        left, right = _shares(pair, *first), pair.degree * _shares(pair, *second)
    return _ratio((left - right).norm(), torch.maximum(left.norm(), right.norm()), size)


def _ratio(gap: Tensor, scale: Tensor, size: Tensor) -> float:
    """``gap / scale``, NaN if the scale is zero or lost in the rounding of numbers of ``size``."""
    limits = torch.finfo(scale.dtype)
    return float(gap / scale) if bool(scale > 1e3 * limits.eps * size) and bool(scale > limits.tiny) else float("nan")


def _shares(pair: LayerPair, left: Float[Tensor, "h m"], right: Float[Tensor, "h m"]) -> Tensor:
    per_unit = (left * right).sum(-1)
    if pair.law is Law.ROTATION_PAIRS:
        return rotation_blocks(per_unit, pair.rotation).sum(-1)
    return per_unit.sum().reshape(1) if pair.law is Law.NORM else per_unit


class _NotDifferentiable(Exception):
    """The model runs, but its outputs cannot be differentiated."""


def _gradients(
    model: nn.Module, probes: Sequence[Any], output: Pick, batch_statistics: bool
) -> Iterator[tuple[_Point, State]]:
    """Gradients of a random combination of the outputs, at each probe and at the weights and near them."""
    names = _names(model)
    for inputs in probes:
        for jitter in (False, True):
            point = _point(model, inputs, output, jitter, batch_statistics)
            leaves = {name: value.detach().requires_grad_() for name, value in point.parameters.items()}
            with torch.enable_grad():
                outputs = run(model, {**point.buffers, **leaves}, point.inputs, output, batch_statistics)
                if not all(bool(value.isfinite().all()) for value in outputs):
                    continue
                generator = spawn(0, "diagnose", "output probe")
                total = sum(
                    ((value * torch.randn(value.shape, generator=generator).to(value)).sum() for value in outputs),
                    torch.zeros((), dtype=outputs[0].dtype, device=outputs[0].device),
                )
                try:
                    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
                except Exception as error:  # custom functions raise what they like
                    first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
                    raise _NotDifferentiable(f"its outputs cannot be differentiated ({first_line})") from None
            own = {
                name: torch.zeros_like(leaf) if gradient is None else gradient
                for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
            }
            yield (
                dataclasses.replace(point, parameters={name: point.parameters[first] for name, first in names.items()}),
                {name: own[first] for name, first in names.items()},
            )


def _names(model: nn.Module) -> dict[str, str]:
    """Every name of every floating parameter, with the name it is known by first (tied parameters have several)."""
    first: dict[int, str] = {}
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.is_floating_point():
            names[name] = first.setdefault(id(parameter), name)
    return names


def _point(model: nn.Module, inputs: Any, output: Pick, jitter: bool, batch_statistics: bool) -> _Point:
    """The model's state and inputs in double precision if it runs there, else in its own."""
    parameters = {name: value.detach() for name, value in model.named_parameters() if value.is_floating_point()}
    if jitter:
        generator = spawn(0, "diagnose", "weight probe")
        parameters = {name: _jittered(value, generator) for name, value in parameters.items()}
    buffers = {name: value.detach() for name, value in model.named_buffers()}
    precise = _Point(
        {name: _double(value) for name, value in parameters.items()},
        {name: _double(value) for name, value in buffers.items()},
        map_tensors(inputs, _double),
    )
    try:
        with torch.no_grad():
            run(model, {**precise.buffers, **precise.parameters}, precise.inputs, output, batch_statistics)
    except Exception:  # a model may insist on its own precision; then that is used
        coarse = next((value.dtype for value in parameters.values() if value.dtype in _COARSE), None)
        if coarse is not None:
            raise _NotDifferentiable(
                f"it runs neither in float64 nor precisely enough in {str(coarse).removeprefix('torch.')} to be checked"
            ) from None
        return _Point(parameters, buffers, inputs)
    return precise


def _double(value: Tensor) -> Tensor:
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64) if value.is_floating_point() else value


def _jittered(value: Tensor, generator: torch.Generator) -> Tensor:
    """A point nearby: every entry changed by up to a tenth; a parameter that is all zero gets small values."""
    if not bool(value.any()):
        return _FROM_ZERO * torch.randn(value.shape, generator=generator).to(value)
    return value * (1 + _JITTER * (2 * torch.rand(value.shape, generator=generator) - 1).to(value))


def run(
    model: nn.Module, state: Mapping[str, Tensor], inputs: Any, output: Pick, batch_statistics: bool = False
) -> list[Tensor]:
    """All outputs that count, with other parameters and buffers, in evaluation mode; the model keeps its state.

    With ``batch_statistics`` batch normalisation takes the statistics of the batch, as it does in training.
    """
    args, kwargs = arguments(inputs)
    buffers = {name for name, _ in model.named_buffers()}
    own = {name: value.clone() if name in buffers else value for name, value in state.items()}
    with without_trace(model), plain_attention(), _batch_norms(model, batch_statistics):
        result = torch.func.functional_call(model, own, args, kwargs)
    return float_tensors(result) if output is prediction else [output(result)]


@contextlib.contextmanager
def _batch_norms(model: nn.Module, training: bool) -> Iterator[None]:
    """Batch norms in training mode, if asked; ``without_trace`` around it puts the modes back."""
    for module in model.modules() if training else ():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.training = True
    yield
