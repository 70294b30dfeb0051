r"""The empirical neural tangent kernel of any model, and how far training has turned it.

The traced kernel :math:`K_{ab} = \sum_o \langle \partial_\theta f_o(x_a), \partial_\theta f_o(x_b)\rangle` sums over
outputs; it is also split by parameter. With many outputs a Gaussian sketch of them estimates the same sum.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose
from separatrix.core.random import spawn
from separatrix.core.result import Result

from ..model_call import Pick, call_with, evaluation_mode, n_samples, plain_attention, prediction, take
from .similarity import centre

MAX_SAMPLES = 200
MAX_OUTPUTS = 20
_MEMORY = 256 * 2**20
"""Bytes that ``chunk_size="auto"`` allows for the gradients of one chunk of samples."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class TangentKernel(Result):
    """A traced tangent kernel.

    Attributes:
        kernel: (P, P), the sum over parameters.
        by_parameter: the share of each parameter, same shape.
        n_outputs: number of outputs per sample.
        sketched: whether outputs were sketched instead of summed one by one.
        method: ``"vmap"``, or ``"loop"`` for models that cannot be vectorised over samples.
    """

    kernel: Float[Tensor, "p p"]
    by_parameter: dict[str, Tensor] = dataclasses.field(repr=False)
    n_outputs: int
    sketched: bool
    method: str


def tangent_kernel(
    model: nn.Module,
    inputs: Any,
    *,
    state: Mapping[str, Tensor] | None = None,
    output: Pick = prediction,
    max_outputs: int = MAX_OUTPUTS,
    chunk_size: int | Literal["auto"] = "auto",
    generator: torch.Generator | None = None,
) -> TangentKernel:
    """The traced empirical tangent kernel on a batch, in evaluation mode, exact up to rounding.

    Args:
        model: any model; unchanged.
        inputs: at most ``MAX_SAMPLES`` samples, in any form that a call of the model takes.
        state: parameters and buffers to use instead of the model's own.
        output: takes the model's output and returns the prediction (samples first, all other axes are outputs).
        max_outputs: with more outputs than this, that many Gaussian combinations of outputs are used: unbiased, with
            a relative error of about 1/sqrt(max_outputs).
        chunk_size: samples whose gradients are held at once; ``"auto"`` keeps them within 256 MB.
        generator: for the sketch; without one a fixed stream is used, so that two calls agree.

    Returns:
        The kernel, in float64, with the share of each parameter.

    Raises:
        InvalidInput: too many samples, parameters none of which can be trained.

    Cost: n_outputs backward passes over the batch, times (P / chunk_size + 1) / 2 when it does not fit at once.
    """
    count = n_samples(inputs)
    if count > MAX_SAMPLES:
        raise InvalidInput(f"the kernel is computed on at most {MAX_SAMPLES} samples; got {count}. Take fewer.")
    fixed, moving = _split(model, state)
    with evaluation_mode(model), plain_attention():
        probes, sketched = _probes(model, {**fixed, **moving}, inputs, output, max_outputs, generator)
        chunk = _chunk(chunk_size, count, moving)
        gradients, method = _gradient_function(model, fixed, moving, inputs, output, probes)
        shares = _accumulate(gradients, moving, count, chunk, probes)
    weight = 1.0 / probes.shape[0] if sketched else 1.0
    shares = {name: share * weight for name, share in shares.items()}
    total = torch.stack(list(shares.values())).sum(0)
    return TangentKernel(total, shares, int(probes[0].numel()), sketched, method)


def _split(model: nn.Module, state: Mapping[str, Tensor] | None) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Buffers and frozen parameters, and the parameters that are trained, from the model or from a state."""
    state = state or {}
    moving = {n: state.get(n, p).detach() for n, p in model.named_parameters() if p.requires_grad}
    fixed = {n: state.get(n, p).detach() for n, p in model.named_parameters() if not p.requires_grad}
    fixed |= {n: state.get(n, b).detach().clone() for n, b in model.named_buffers()}
    if not moving:
        raise InvalidInput("the model has no parameter that requires a gradient, so it has no tangent kernel.")
    return fixed, moving


def _probes(
    model: nn.Module,
    state: dict[str, Tensor],
    inputs: Any,
    output: Pick,
    max_outputs: int,
    generator: torch.Generator | None,
) -> tuple[Tensor, bool]:
    """Vectors v such that the kernel is the sum over v of the kernel of v . f: unit vectors, or Gaussian ones."""
    require_integer(max_outputs, "max_outputs", at_least=1)
    with torch.no_grad():
        shape = output(call_with(model, state, take(inputs, slice(0, 1)))).shape[1:]
    n_outputs = shape.numel()
    if n_outputs <= max_outputs:
        return torch.eye(n_outputs).reshape(n_outputs, *shape), False
    generator = generator or spawn(0, "diagnose", "output sketch")
    return torch.randn(max_outputs, *shape, generator=generator), True


def _chunk(chunk_size: int | Literal["auto"], count: int, moving: dict[str, Tensor]) -> int:
    if isinstance(chunk_size, int):
        return min(require_integer(chunk_size, "chunk_size", at_least=1), count)
    choose("chunk_size", chunk_size, ("auto",), also="a whole number")
    size = sum(p.numel() * p.element_size() for p in moving.values())
    return max(1, min(count, _MEMORY // (2 * size)))


def _gradient_function(
    model: nn.Module, fixed: dict[str, Tensor], moving: dict[str, Tensor], inputs: Any, output: Pick, probes: Tensor
) -> tuple[Any, str]:
    """A function (samples, probe) -> gradients of probe . f per sample, and how it works."""

    def scalar(parameters: dict[str, Tensor], sample: Any, probe: Tensor) -> Tensor:
        one = _map(sample, lambda value: value.unsqueeze(0))
        value = output(call_with(model, {**fixed, **parameters}, one))
        return (value[0] * probe.to(value)).sum()

    per_sample = torch.func.vmap(torch.func.grad(scalar), in_dims=(None, 0, None))

    def vectorised(samples: slice, probe: Tensor) -> dict[str, Tensor]:
        return per_sample(moving, take(inputs, samples), probe)

    def looped(samples: slice, probe: Tensor) -> dict[str, Tensor]:
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in moving.items()}
        rows: list[list[Tensor]] = []
        for index in range(n_samples(inputs))[samples]:
            with torch.enable_grad():
                value = output(call_with(model, {**fixed, **leaves}, take(inputs, slice(index, index + 1))))
                found = torch.autograd.grad(
                    (value[0] * probe.to(value)).sum(), list(leaves.values()), allow_unused=True
                )
            rows.append([torch.zeros_like(p) if g is None else g for g, p in zip(found, leaves.values(), strict=True)])
        return {name: torch.stack(column) for name, column in zip(leaves, zip(*rows, strict=True), strict=True)}

    try:
        vectorised(slice(0, 1), probes[0])
    except Exception:  # vmap fails in many ways on recurrent layers and value-dependent Python; the result says so
        return looped, "loop"
    return vectorised, "vmap"


def _map(inputs: Any, function: Any) -> Any:
    if isinstance(inputs, Tensor):
        return function(inputs)
    if isinstance(inputs, Mapping):
        return {name: function(v) if isinstance(v, Tensor) else v for name, v in inputs.items()}
    return tuple(function(value) if isinstance(value, Tensor) else value for value in inputs)


def _accumulate(gradients: Any, moving: dict[str, Tensor], count: int, chunk: int, probes: Tensor) -> dict[str, Tensor]:
    """J J^T per parameter, probe by probe and block of samples by block of samples."""
    device = next(iter(moving.values())).device
    shares = {name: torch.zeros(count, count, dtype=torch.float64, device=device) for name in moving}
    blocks = [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]
    for probe in probes:
        for i, rows in enumerate(blocks):
            left = gradients(rows, probe)
            for columns in blocks[i:]:
                right = left if columns == rows else gradients(columns, probe)
                for name, share in shares.items():
                    block = left[name].flatten(1).to(torch.float64) @ right[name].flatten(1).to(torch.float64).mT
                    share[rows, columns] += block
                    if columns != rows:
                        share[columns, rows] += block.mT
    return shares


def kernel_distance(before: Float[Tensor, "*batch p p"], after: Float[Tensor, "*batch p p"]) -> Float[Tensor, "*batch"]:
    """1 - cosine of two kernels: 0 when one is a multiple of the other."""
    inner = (before * after).sum((-2, -1))
    return 1 - inner / (before.square().sum((-2, -1)) * after.square().sum((-2, -1))).sqrt()


def relative_change(before: Float[Tensor, "*batch p p"], after: Float[Tensor, "*batch p p"]) -> Float[Tensor, "*batch"]:
    """|K_after - K_before| / |K_before| in the Frobenius norm."""
    return (after - before).square().sum((-2, -1)).sqrt() / before.square().sum((-2, -1)).sqrt()


def label_alignment(kernel: Float[Tensor, "p p"], targets: Float[Tensor, "p c"]) -> float:
    """Cosine of the centred kernel with the centred kernel of the targets: 1 when the kernel sees only the task."""
    target = targets.to(torch.float64)
    wanted, have = centre(target @ target.mT), centre(kernel.to(torch.float64))
    scale = wanted.norm() * have.norm()
    return float((wanted * have).sum() / scale) if float(scale) > 0 else float("nan")
