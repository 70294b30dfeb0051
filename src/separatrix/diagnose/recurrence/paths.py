"""Where gradients really travel in a recurrent network that attends to its past."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core import InvalidInput, Result, ShapeError, require_integer, spawn
from separatrix.core.networks.attentive_steps import AttentiveSteps
from separatrix.core.networks.trace import Trace
from separatrix.core.scalars import require_number

from .dependency import Dependency, dependency
from .path_sweep import degree_sweep


@final
@dataclasses.dataclass(frozen=True, repr=False)
class GradientPaths(Result):
    """What a network attends to, and by which paths its gradient goes back."""

    attention: Float[Tensor, "batch t t"]
    """Weight of each step (last axis) at each step."""
    attended: Float[Tensor, "batch t"]
    """How many states have more than a negligible weight."""
    effective: Float[Tensor, "batch t"]
    """exp of the entropy of the weights: how many evenly attended states it amounts to."""
    dependencies: tuple[Dependency | None, ...]
    """For each sequence the chain from the step asked for to the end; ``None`` where none is strong enough."""
    log_norms: Float[Tensor, " t"]
    """log of the norm of dL/dh of each step over the batch, all later uses counted."""
    degree_norms: Float[Tensor, "d t"]
    """Norm of the part of dL/dh that comes by paths of that many recurrent steps."""
    degrees: Float[Tensor, "d t batch h"] = dataclasses.field(repr=False)
    """The parts themselves."""
    total: Float[Tensor, "t batch h"] = dataclasses.field(repr=False)
    """Their sum over all degrees: the gradient."""
    remainder: float
    """Largest share of a step's gradient that comes by paths of still more recurrent steps."""


def gradient_paths(
    model: nn.Module,
    batch: Float[Tensor, "batch t i"],
    loss: Callable[[Tensor], Tensor] | None = None,
    *,
    step: int = 0,
    n_degrees: int = 32,
    threshold: float = 0.01,
    negligible: float = 1e-3,
    attention_only: bool = False,
    seed: int = 0,
) -> GradientPaths:
    """Follow the gradient of an attentive recurrent network back along its attention.

    Args:
        model: a module that leaves ``last.trace`` with attention and offers ``attentive_steps()``, as those of
            ``separatrix.nn`` do; those with full memory need ``log_attention=True``.
        batch: inputs, batch first.
        loss: of the hidden states (batch, t, h); by default a random combination of the last macro-state.
        step: the step (from 0) whose dependency on the end is looked for.
        n_degrees: how many degrees are told apart.
        threshold: least product of factors that counts as a chain.
        negligible: weights up to this do not count as attended.
        attention_only: whether a chain may use attention alone, not a state's direct part in its own macro-state.
        seed: of the random combination.

    Source: kerg2022, Proposition 4.4.1 and appendix B.1.

    Cost: n_degrees + 1 ways back, and a graph of every step.
    """
    degrees = require_integer(n_degrees, "n_degrees", at_least=1)
    require_number(threshold, "threshold", at_least=0)
    require_number(negligible, "negligible", at_least=0)
    if not isinstance(batch, Tensor) or batch.ndim != 3 or 0 in batch.shape:
        raise ShapeError("batch must be inputs (batch, time, features) with at least one of each.")
    first = require_integer(step, "step", at_least=0)
    if first >= batch.shape[1]:
        raise InvalidInput(f"step must be below the {batch.shape[1]} steps of batch; got {first}.")
    trace, steps = _run(model, batch)
    by_state, by_hidden = _direct(trace, loss, seed)
    x = batch.transpose(0, 1).to(trace.states.dtype)
    with torch.enable_grad():
        swept = degree_sweep(steps, x, trace, by_state, by_hidden, degrees)
    parts, total = swept[:-1].detach(), swept[-1].detach()
    weights, indices = trace.weights, trace.indices
    assert weights is not None
    assert indices is not None
    mix = (1.0, 1.0) if steps.mix is None else steps.mix
    chains = tuple(
        dependency(row, index, first, mix, threshold=threshold, attention_only=attention_only)
        for row, index in zip(weights, indices, strict=True)
    )
    sizes = total.flatten(1).norm(dim=1)
    missing = (total - parts.sum(0)).flatten(1).norm(dim=1)
    share = torch.where(sizes > 0, missing / sizes, 0.0)
    return GradientPaths(
        _map(weights, indices),
        (weights > negligible).sum(-1).to(weights.dtype),
        torch.exp(torch.special.entr(weights).sum(-1)),
        chains,
        sizes.log(),
        parts.flatten(2).norm(dim=2),
        parts,
        total,
        float(share.max()),
    )


def _run(model: nn.Module, batch: Tensor) -> tuple[Trace, AttentiveSteps]:
    offers = getattr(model, "attentive_steps", None)
    steps = offers() if callable(offers) else None
    if not isinstance(steps, AttentiveSteps) or not getattr(model, "batch_first", True):
        raise InvalidInput(
            f"model must be batch first and offer attentive_steps(), as RelRNN does; {type(model).__name__} does not."
        )
    with torch.no_grad():
        model(batch)
    last: Any = getattr(model, "last", None)
    trace = getattr(last, "trace", None)
    if not isinstance(trace, Trace) or trace.weights is None or trace.indices is None or trace.hidden is None:
        raise InvalidInput("model must leave last.trace with its attention; make it with log_attention=True.")
    return trace, steps


def _direct(trace: Trace, loss: Callable[[Tensor], Tensor] | None, seed: int) -> tuple[Tensor, Tensor]:
    """Derivatives of the loss by macro-states and by hidden states, without the recurrence."""
    assert trace.hidden is not None
    by_state, by_hidden = torch.zeros_like(trace.states[:, 1:]), torch.zeros_like(trace.hidden)
    if loss is None:
        drawn = torch.randn(by_state[:, -1].shape, generator=spawn(seed, "gradient paths"), dtype=torch.float64)
        by_state[:, -1] = drawn.to(by_state)
    else:
        leaf = trace.hidden.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = loss(leaf)
        if not isinstance(value, Tensor) or value.numel() != 1 or not value.requires_grad:
            raise InvalidInput("loss must give one number that depends on the hidden states.")
        by_hidden = torch.autograd.grad(value.sum(), leaf)[0]
    return by_state.transpose(0, 1), by_hidden.transpose(0, 1)


def _map(weights: Tensor, indices: Tensor) -> Tensor:
    """Weights by step and attended step."""
    n_steps = weights.shape[1]
    square = weights.new_zeros(*weights.shape[:2], n_steps)
    return square.scatter_add(2, indices.long().clamp_min(0), torch.where(indices >= 0, weights, 0.0))
