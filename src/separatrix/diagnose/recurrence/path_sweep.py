"""Gradients of an attentive recurrent network, sorted by the number of recurrent steps that their paths take."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.networks.attentive_steps import AttentiveSteps
from separatrix.core.networks.trace import Trace


@final
@dataclasses.dataclass
class _Step:
    """One step with tensors that a gradient stops at, and what came out of them."""

    before: Tensor
    carried: Tensor | None
    unit: Tensor
    carried_on: Tensor | None
    leaf: Tensor
    seen: Tensor
    rows: Tensor
    state: Tensor


def degree_sweep(
    steps: AttentiveSteps, x: Tensor, trace: Trace, by_state: Tensor, by_hidden: Tensor, n_degrees: int
) -> Tensor:
    """dL/dh of every step, (n_degrees + 1, t, batch, h): one slice per degree below ``n_degrees``, and their whole sum.

    Args:
        steps: the halves of a step.
        x: inputs, time first.
        trace: of the same inputs, with attention.
        by_state: direct derivative of the loss by macro-states, (t, batch, s).
        by_hidden: direct derivative by hidden states, (t, batch, h).
        n_degrees: how many degrees are told apart; paths beyond are in the sum alone.

    Each step back shifts the degrees by one; the last channel is not shifted and is the ordinary gradient.
    """
    walk = _replay(steps, x, trace)
    n_steps, batch = x.shape[:2]
    hidden = by_hidden.new_zeros(n_degrees + 1, n_steps, batch, by_hidden.shape[-1])
    state = by_state.new_zeros(n_degrees + 1, batch, by_state.shape[-1])
    carried: Tensor | None = None
    samples = torch.arange(batch, device=x.device).unsqueeze(1)
    for t in range(n_steps - 1, -1, -1):
        step = walk[t]
        for channel in (0, n_degrees):  # what the loss sees directly is a path without recurrent steps
            state[channel] += by_state[t]
            hidden[channel, t] += by_hidden[t]
        by_query, by_leaf, by_seen = _products(step.state, (step.before, step.leaf, step.seen), state)
        hidden[:, t] += by_leaf
        for channel in range(n_degrees + 1):
            hidden[channel].index_put_((step.rows.clamp_min(0), samples), by_seen[channel], accumulate=True)
        by_unit, *by_carried = _through_unit(step, hidden[:, t], carried)
        state = _shifted(by_query + by_unit)
        carried = _shifted(by_carried[0]) if by_carried else None
    return hidden


def _replay(steps: AttentiveSteps, x: Tensor, trace: Trace) -> list[_Step]:
    """The run once more with the memory it had, each step with a graph of its own."""
    assert trace.hidden is not None
    assert trace.indices is not None
    stored = trace.hidden.transpose(0, 1)
    samples = torch.arange(x.shape[1], device=x.device).unsqueeze(1)
    carried = steps.carried(x.shape[1])
    walk = []
    for t, entering in enumerate(x.unbind(0)):
        before = trace.states[:, t].detach().requires_grad_()
        held = None if carried is None else carried.detach().requires_grad_()
        unit, carried = steps.unit(entering, before, held)
        rows = trace.indices[:, t].long()
        leaf = unit.detach().requires_grad_()
        seen = stored[rows.clamp_min(0), samples].detach().requires_grad_()
        state = steps.attend(before, leaf, seen, rows >= 0)
        walk.append(_Step(before, held, unit, carried, leaf, seen, rows, state))
    return walk


def _through_unit(step: _Step, by_hidden: Tensor, by_carried: Tensor | None) -> tuple[Tensor, ...]:
    if step.carried is None:
        return _products(step.unit, (step.before,), by_hidden)
    assert step.carried_on is not None
    both = torch.cat([step.unit, step.carried_on], -1)
    later = torch.zeros_like(by_hidden) if by_carried is None else by_carried
    return _products(both, (step.before, step.carried), torch.cat([by_hidden, later], -1))


def _products(output: Tensor, inputs: tuple[Tensor, ...], gradients: Tensor) -> tuple[Tensor, ...]:
    """Transposed derivative of a step, applied to all channels."""
    rows = [
        torch.autograd.grad(output, inputs, gradient, retain_graph=True, materialize_grads=True)
        for gradient in gradients
    ]
    return tuple(torch.stack(parts) for parts in zip(*rows, strict=True))


def _shifted(gradients: Tensor) -> Tensor:
    """One degree more; the whole sum, which stands last, stays."""
    moved = torch.zeros_like(gradients)
    moved[1:-1] = gradients[:-2]
    moved[-1] = gradients[-1]
    return moved
