"""Run a step along a sequence: one node of the autograd graph for the whole sequence.

Autograd through a Python loop keeps several tensors and nodes for every operation of every step. Here the loop runs
into one buffer of states, and the way back is another loop by hand, after which gradients by the weights are single
products over all steps. What the node cannot do (second derivatives, forward mode, the transforms of ``torch.func``)
is done by the plain loop instead, which gives the same numbers to rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Int, Num
from torch import Tensor
from torch.autograd import forward_ad

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import ShapeError

from .compiled import runs_compiled
from .step import AbstractSequenceKernel, AbstractStep, Weights


def scan(
    step: AbstractStep,
    drives: Num[Tensor, "t batch d"],
    initial: Num[Tensor, "batch n"],
    weights: Weights,
    lengths: Int[Tensor, " batch"] | None = None,
) -> Num[Tensor, "t batch n"]:
    """The states after each step of a sequence.

    Args:
        step: the formula of one step.
        drives: what enters at each step, time first.
        initial: the state before the first step.
        weights: of the step, shared by all steps.
        lengths: number of steps of each sample; its state stays as it is afterwards. All steps if not given.

    Cost: T steps one after the other. Memory for the gradient: drives and states, (T + 1) batch (d + n) numbers.
    """
    if drives.ndim != 3 or initial.ndim != 2 or drives.shape[1] != initial.shape[0]:
        raise ShapeError(
            f"drives must be (time, batch, d) and initial (batch, n); got {tuple(drives.shape)} and "
            f"{tuple(initial.shape)}."
        )
    if needs_plain_loop(drives, initial, *weights) or step.kernel(weights) is None:
        return plain_scan(step, drives, initial, weights, lengths)
    is_compiled = runs_compiled(step, drives, initial, weights)
    states: Tensor = _Scan.apply(step, is_compiled, lengths, drives, initial, *weights)
    return states


def plain_scan(
    step: AbstractStep, drives: Tensor, initial: Tensor, weights: Weights, lengths: Tensor | None = None
) -> Tensor:
    """The same states by a loop that autograd follows."""
    states = [initial]
    for t, drive in enumerate(drives.unbind(0)):  # unbind: indexing in the loop would make the way back quadratic
        state = step.advance(drive, states[-1], weights)
        if lengths is not None:
            state = torch.where((t < lengths).unsqueeze(-1), state, states[-1])
        states.append(state)
    return torch.stack(states[1:])


def needs_plain_loop(*tensors: Tensor) -> bool:
    """Whether a node of its own would be wrong: under a transform of ``torch.func``, or in forward mode."""
    if transforms_active():
        return True
    if forward_ad._current_level < 0:
        return False
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


class _Scan(torch.autograd.Function):
    """Forward and backward loops around the kernel of a step; see the head of this file."""

    @staticmethod
    def forward(
        ctx: Any,
        step: AbstractStep,
        is_compiled: bool,
        lengths: Tensor | None,
        drives: Tensor,
        initial: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        states = drives.new_empty((drives.shape[0] + 1, *initial.shape), dtype=initial.dtype)
        states[0] = initial
        _kernel(step, weights, is_compiled).forward_sequence(drives, states, lengths)
        ctx.step, ctx.is_compiled, ctx.lengths = step, is_compiled, lengths
        ctx.save_for_backward(states, drives, initial, *weights)  # the whole buffer: gluing it together again is slow
        return states[1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        states, drives, initial, *weights = ctx.saved_tensors
        needed = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():  # create_graph=True: the way back must itself be differentiable
            arguments = (ctx.step, drives, initial, tuple(weights), ctx.lengths)
            found = _plain_gradients(arguments, gradients[0], needed)
        else:
            kernel = _kernel(ctx.step, tuple(weights), ctx.is_compiled)
            by_drives, by_initial = kernel.backward_sequence(drives, states, gradients[0], ctx.lengths)
            found = (by_drives, by_initial, *kernel.weight_gradients(by_drives, states))
        wanted = [value if need else None for value, need in zip(found, needed, strict=True)]
        return None, None, None, *wanted


def _kernel(step: AbstractStep, weights: Weights, is_compiled: bool) -> AbstractSequenceKernel:
    kernel = step.compiled_kernel(weights) if is_compiled else step.kernel(weights)
    assert kernel is not None
    return kernel


def _plain_gradients(
    arguments: tuple[Any, ...], gradient: Tensor, needed: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    step, drives, initial, weights, lengths = arguments
    given = (drives, initial, *weights)
    wanted = [value for value, need in zip(given, needed, strict=True) if need]
    states = plain_scan(step, drives, initial, weights, lengths)
    found = iter(torch.autograd.grad(states, wanted, gradient, create_graph=True, allow_unused=True))
    return tuple(next(found) if need else None for need in needed)
