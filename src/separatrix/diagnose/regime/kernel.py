r"""The empirical neural tangent kernel of any model, and how far training has turned it.

The full kernel :math:`K` has a row per sample and output. It is never formed: its norm and inner products are taken
over blocks
:math:`B_{ab} = \langle \partial_\theta\, u\cdot f(x_a), \partial_\theta\, v\cdot f(x_b)\rangle` for pairs of
output directions u, v: all pairs of unit vectors if there are few outputs (exact), else independent Gaussian vectors
(unbiased: the mean of :math:`\langle B, B' \rangle` is :math:`\langle K, K' \rangle`). The traced kernel
:math:`\sum_o K_{ao,bo}` is cheaper and is also split by parameter, but does not see a rotation of the outputs.
"""

from __future__ import annotations

import dataclasses
import math
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
_EXACT_OUTPUTS = 4
"""With at most this many outputs all pairs of them are used."""
_PAIRS = 12
"""Random pairs of output directions, with more outputs."""
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
        blocks: the full kernel seen through pairs of output directions, each scaled so that the sum of products of
            blocks is the inner product of full kernels; empty if they were not asked for.
    """

    kernel: Float[Tensor, "p p"]
    blocks: Float[Tensor, "pairs p p"] = dataclasses.field(repr=False)
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
    full: bool = False,
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
        full: also take the blocks of the full kernel, for ``full_change`` and ``full_distance``.

    Returns:
        The kernel, in float64, with the share of each parameter.

    Raises:
        InvalidInput: too many samples, parameters none of which can be trained.

    Cost: n_outputs backward passes over the batch, times (P / chunk_size + 1) / 2 when it does not fit at once; with
    ``full`` 20 to 24 more (2 to 20 with up to 4 outputs), times P / chunk_size.
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
        pairs = _output_pairs(probes[0].shape, generator) if full else []
        device = next(iter(moving.values())).device
        blocks = [_block(gradients, count, chunk, u, v, device) * weight for u, v, weight in pairs]
    weight = 1.0 / probes.shape[0] if sketched else 1.0
    shares = {name: share * weight for name, share in shares.items()}
    total = torch.stack(list(shares.values())).sum(0)
    stacked = torch.stack(blocks) if blocks else total.new_empty(0, count, count)
    return TangentKernel(total, stacked, shares, int(probes[0].numel()), sketched, method)


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


def _output_pairs(shape: torch.Size, generator: torch.Generator | None) -> list[tuple[Tensor, Tensor, float]]:
    """Pairs of output directions, and what to multiply their block by."""
    n_outputs = shape.numel()
    if n_outputs <= _EXACT_OUTPUTS:
        unit = torch.eye(n_outputs).reshape(n_outputs, *shape)
        return [
            (unit[i], unit[j], 1.0 if i == j else math.sqrt(2)) for i in range(n_outputs) for j in range(i, n_outputs)
        ]
    generator = generator or spawn(0, "diagnose", "output pairs")
    directions = torch.randn(2, _PAIRS, *shape, generator=generator)
    return [(u, v, 1 / math.sqrt(_PAIRS)) for u, v in zip(*directions, strict=True)]


def _block(gradients: Any, count: int, chunk: int, u: Tensor, v: Tensor, device: torch.device) -> Tensor:
    """The block of the full kernel between two output directions."""
    block = torch.zeros(count, count, dtype=torch.float64, device=device)
    slices = [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]
    for rows in slices:
        left = gradients(rows, u)
        for columns in slices:
            right = left if u is v and rows == columns else gradients(columns, v)
            for name, value in left.items():
                block[rows, columns] += value.flatten(1).to(torch.float64) @ right[name].flatten(1).to(torch.float64).mT
    return block


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


def full_change(before: TangentKernel, after: TangentKernel) -> float:
    """|K_after - K_before| / |K_before| of the full kernels, all outputs with all outputs."""
    return float((after.blocks - before.blocks).norm() / before.blocks.norm())


def full_distance(before: TangentKernel, after: TangentKernel) -> float:
    """1 - cosine of the full kernels: unlike that of traced kernels it sees a rotation of the outputs."""
    inner = (before.blocks * after.blocks).sum()
    return float(1 - inner / (before.blocks.norm() * after.blocks.norm()))


def label_alignment(kernel: Float[Tensor, "p p"], targets: Float[Tensor, "p c"]) -> float:
    """Cosine of the centred kernel with the centred kernel of the targets: 1 when the kernel sees only the task."""
    target = targets.to(torch.float64)
    wanted, have = centre(target @ target.mT), centre(kernel.to(torch.float64))
    scale = wanted.norm() * have.norm()
    return float((wanted * have).sum() / scale) if float(scale) > 0 else float("nan")
