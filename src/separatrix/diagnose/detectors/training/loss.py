"""The loss: what it expects against what it gets, where it starts, what one step of the optimiser does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ...findings.finding import Finding, Place
from ...findings.thresholds import threshold
from ...model_call import real_tensors
from ...optimisers import learning_rates
from ...recording.observed import Observed
from ...recording.passes import gradients
from ...recording.protection import moved
from ...recording.subject import as_left
from ..reporting import beyond, fine, judged, module_of
from .loss_kinds import loss_kind
from .next_step import after_one_step
from .sharpness import curvature, estimated_seconds


def output_loss_mismatch(facts: Observed) -> list[Finding]:
    """Probabilities into a loss with its own softmax or sigmoid, or anything but log-probabilities into NLL.

    Scores that happen to lie between 0 and 1 are none: they must stay there when the last layer is made 1000 times
    larger. Cost: a few losses, and a forward where there is a suspicion.
    """
    kind = loss_kind(facts)
    if kind is None or kind.name == "other":
        return []
    f = kind.of.detach().double()
    if f.ndim < 1 or not bool(torch.isfinite(f).all()):
        return []
    open_interval = bool(((f > 0) & (f < 1)).all()) and f.numel() >= 32
    sums_to_one = f.ndim > 1 and open_or_closed(f) and bool(((f.sum(kind.axis) - 1).abs() < 1e-3).all())
    floor = math.log(math.e + kind.classes - 1) - 1
    if kind.name == "softmax" and sums_to_one and kind.classes > 1:
        said = f"the model ends in a softmax and the loss has its own; it cannot fall below {floor:.3g}."
        return [_mismatch(facts, floor, said, "Remove the last softmax: the loss takes raw scores.")]
    if kind.name == "softmax" and open_interval and f.shape[kind.axis] > 1 and _stays_inside(facts, kind.path):
        said = f"scores between 0 and 1 enter a loss with its own softmax; it cannot fall below {floor:.3g}."
        return [_mismatch(facts, floor, said, "Remove the last sigmoid: the loss takes raw scores.")]
    if kind.name == "nll" and not bool((f.logsumexp(kind.axis).abs() < 1e-2).all()):
        what = "probabilities" if sums_to_one else "raw scores"
        said = f"{what} enter a negative log-likelihood, which takes log-probabilities: it has no lower bound."
        return [_mismatch(facts, float(f.logsumexp(kind.axis).abs().mean()), said, "End with log_softmax.")]
    if kind.name == "bce_logits" and open_interval and not _soft_range(f) and _stays_inside(facts, kind.path):
        floor = math.log(1 + math.exp(-1))
        said = f"values between 0 and 1 enter a loss with its own sigmoid; it cannot fall below {floor:.3g} for ones."
        return [_mismatch(facts, floor, said, "Remove the last sigmoid: the loss takes raw scores.")]
    return [fine("output_loss_mismatch", 0.0, f"output fits the loss ({kind.name})")]


_LOUDER = 1000.0


def _stays_inside(facts: Observed, path: tuple[str, ...] | None) -> bool:
    """Whether a prediction stays in [0, 1] when the last layer and its bias are made 1000 times larger."""
    _ = facts.input_gradients
    head = facts.forward.head
    if head is None:
        return True
    owners = {module_of(root) for root in head.roots}
    louder = {
        value: value.detach() * _LOUDER
        for name, value in facts.subject.parameters.items()
        if name in head.roots or (module_of(name) in owners and value.ndim == 1)
    }
    with moved(louder), as_left(facts.subject.model), torch.no_grad():
        output, _ = facts.subject.forward()
    named = dict(real_tensors(output)) if path is not None else {}
    value = named[path] if path in named else facts.subject.predicted(output)
    return open_or_closed(value.detach().double())


def open_or_closed(f: Tensor) -> bool:
    """Whether everything lies in [0, 1]."""
    return bool(((f >= 0) & (f <= 1)).all())


def _soft_range(f: Tensor) -> bool:
    """Whether all values are the same: then nothing is known of their range."""
    return float(f.max() - f.min()) == 0.0


def _mismatch(facts: Observed, value: float, said: str, advice: str) -> Finding:
    return Finding(
        "output_loss_mismatch", "fault", Place("output"), value, said, advice,
        evidence="certain is the floor of the loss; how much accuracy it costs depends on the optimiser",
    )  # fmt: skip


def initial_loss(facts: Observed) -> list[Finding]:
    """Excess of the loss over that of a model that knows nothing: L - ln C, or L - ln 2."""
    kind = loss_kind(facts)
    if facts.loss is None:
        facts.skip("loss", "no loss was given", "loss= and target=")
        return []
    if kind is None or kind.name not in ("softmax", "bce_logits") or not bool(torch.isfinite(facts.loss)):
        return []
    base = math.log(kind.classes)
    start = float(facts.loss) / kind.scale
    excess = start - base
    facts.measures["initial_loss"] = excess
    warning, note = threshold("initial_loss", "warning"), threshold("initial_loss", "note")
    said = f"the loss starts at {start:.3g}; knowing nothing costs ln {kind.classes} = {base:.3g}."
    if excess <= note:
        return [fine("initial_loss", excess, f"initial loss {start:.4g} (ln {kind.classes} = {base:.4g})")]
    spread = float(facts.forward.predicted.detach().double().std())
    return [
        judged(
            "initial_loss", "warning" if excess > warning else "note", excess, warning if excess > warning else note,
            said, where=Place("output"), certainty=beyond("initial_loss"), unit="nats",
            advice=f"Scale the head's weights down by about {max(spread, 1.0):.2g}; start its bias at the log prior.",
            code=f"head.weight.data.div_({max(spread, 1.0):.3g})",
        )
    ]  # fmt: skip


def learning_rate(facts: Observed) -> list[Finding]:
    """L(theta - one step of the optimiser) > 1.1 L + 0.1. Cost: one forward."""
    subject, optimizer = facts.subject, facts.subject.optimizer
    if optimizer is None or facts.loss is None:
        facts.skip("learning_rate", "no optimiser and loss were given", "optimizer=, loss= and target=")
        return []
    steps: dict[Tensor, Tensor] = {}
    for group, parameter, gradient in _with_gradients(facts, optimizer):
        if not _is_finite(gradient):
            facts.skip("learning_rate", "the gradient is not finite")
            return []
        moved_to = after_one_step(optimizer, group, parameter, gradient)
        if moved_to is None:
            facts.skip("learning_rate", f"the next step of {type(optimizer).__name__} is not known")
            return []
        steps[parameter] = moved_to
    start = float(facts.loss)
    if not steps or not math.isfinite(start):
        if not steps:
            facts.skip("learning_rate", "the optimiser holds none of the model's parameters with a gradient")
        return []
    with moved(steps), as_left(subject.model), torch.no_grad():
        output, _ = subject.forward()
        after = float(subject.loss_of(output))  # type: ignore[arg-type]
    kind = loss_kind(facts)
    scale = kind.scale if kind is not None else 1.0
    facts.measures["learning_rate"] = (after - start) / scale
    limit = threshold("learning_rate", "ratio") * start + threshold("learning_rate", "absolute") * scale
    rates = learning_rates(optimizer)
    rate = rates[-1]
    at = f"rate {rate:.3g}" if len(rates) == 1 else f"rates {rates[0]:.3g} to {rate:.3g}"
    said = f"one {type(optimizer).__name__} step at {at}: loss {start:.4g} -> {after:.4g}"
    if after <= limit:
        return [fine("learning_rate", after - start, said)]
    advice, code = _smaller_rate(facts, rate)
    strong = not after <= threshold("learning_rate", "fault") * start + threshold("learning_rate", "absolute") * scale
    return [
        judged(
            "learning_rate", "fault" if strong else "warning", after, limit, said + ".", where=Place("optimizer"),
            certainty=beyond("learning_rate"),
            advice=advice, code=code,
        )
    ]  # fmt: skip


def _with_gradients(
    facts: Observed, optimizer: torch.optim.Optimizer
) -> Iterator[tuple[dict[str, Any], Tensor, Tensor]]:
    """What an optimiser moves, with its group and gradient; a loss may have weights that the model does not know."""
    names = {id(value): name for name, value in facts.subject.parameters.items()}
    held = [(group, parameter) for group in optimizer.param_groups for parameter in group["params"]]
    others = [parameter for _, parameter in held if id(parameter) not in names and parameter.requires_grad]
    scalar = facts.subject.scalar(facts.forward.output) if others else torch.zeros(())
    found = {id(value): gradient for value, gradient in zip(others, gradients(scalar, others), strict=True)}
    for group, parameter in held:
        name = names.get(id(parameter))
        gradient = found.get(id(parameter)) if name is None else facts.gradients.get(name)
        if gradient is not None:
            yield group, parameter, gradient


def _is_finite(gradient: Tensor) -> bool:
    """Of a sparse gradient what it holds counts: rows that were not looked up have none."""
    values = gradient.coalesce().values() if gradient.layout is torch.sparse_coo else gradient
    return bool(torch.isfinite(values).all())


def _smaller_rate(facts: Observed, rate: float) -> tuple[str, str]:
    """Advice and code: below the inverse of the curvature for plain gradients, where there is time to measure it."""
    plain = isinstance(facts.subject.optimizer, torch.optim.SGD)
    if plain and facts.budget.allows(2 * estimated_seconds(facts)):
        value, _ = curvature(facts)
        if math.isfinite(value) and value > 0 and 1 / value < rate:
            said = f"Lower the learning rate below 1 / (largest curvature) = {1 / value:.2g}; that one step lowers the "
            return said + "loss is not enough.", f"lr={1 / value:.2g}"
    return "Lower the learning rate by 10, and again until ten steps lower the loss.", f"lr={rate / 10:.3g}"
