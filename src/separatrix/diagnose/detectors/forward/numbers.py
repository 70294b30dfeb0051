"""Numbers that are not finite, inputs far from unit size, forwards that raise."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...findings.finding import EXACT, Finding, Place
from ...findings.thresholds import threshold
from ...recording.observed import Observed
from ...recording.passes import ForwardRaised, unwatched_backward
from ...recording.reductions import all_finite, rms
from ..reporting import beyond, fine, judged, listed, module_of

_LARGE = 1e4
"""Numbers that only growth explains: squares of them leave half precision, and a few more layers single."""


def nonfinite_weights(facts: Observed) -> list[Finding]:
    """Any parameter or buffer that is not finite. Cost: one pass over the weights."""
    model = facts.subject.model
    named = [*model.named_parameters(), *model.named_buffers()]
    masks = {name for name, value in model.named_buffers() if _is_mask(value)}
    bad = [(name, value) for name, value in named if name not in masks and not all_finite(value)]
    return [
        Finding(
            "nonfinite_weights", "fault", Place(module_of(name), name), _count(value),
            f"{name} holds {int(_count(value))} numbers that are not finite, the first at {_first(value)}.",
            "Restore the last good checkpoint; nothing that follows from these weights means anything.",
            unit="numbers",
        )
        for name, value in bad
    ]  # fmt: skip


def _is_mask(value: Tensor) -> bool:
    """A buffer of zeros and minus infinity stands for a mask, which is meant."""
    if not value.is_floating_point() or bool(torch.isnan(value).any()) or bool((value == torch.inf).any()):
        return False
    finite = value[torch.isfinite(value)]
    return finite.numel() < value.numel() and (finite.numel() == 0 or bool((finite == 0).all()))


def _count(value: Tensor) -> float:
    return float((~torch.isfinite(value)).sum())


def _first(value: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in (~torch.isfinite(value.detach())).nonzero()[0])


def nonfinite_input(facts: Observed) -> list[Finding]:
    """Any number of the sample that is not finite."""
    bad = [tensor for tensor in facts.subject.sample.floating if not all_finite(tensor)]
    return [
        Finding(
            "nonfinite_input", "fault", Place("sample"), _count(tensor),
            f"the sample holds {int(_count(tensor))} numbers that are not finite, the first at {_first(tensor)}.",
            "Clean the data before the model; every statistic of this batch is lost.", unit="numbers",
        )
        for tensor in bad[:1]
    ]  # fmt: skip


def nonfinite_output(facts: Observed) -> list[Finding]:
    """An output or loss that is not finite, with the first operation whose result is not while its inputs are."""
    forward = facts.forward
    bad = not all_finite(forward.predicted)
    lost = facts.loss is not None and not all_finite(facts.loss)
    if not (bad or lost):
        return []
    event = forward.operations.origin
    what = "the prediction" if bad else "the loss"
    if event is None:
        place, said = Place(op="loss"), "it arises in the loss function"
    else:
        place, said = Place(event.module, event.op, event.source), f"it begins at {event.op}"
    grown = event is not None and _LARGE < event.largest < math.inf
    return [
        Finding(
            "nonfinite_output", "fault", place, _count(forward.predicted) if bad else 1.0,
            f"{what} is not finite; {said}, whose inputs are finite"
            + (f" and reach {event.largest:.1g}: they grew before." if grown and event is not None else "."),
            "Find what grows before it: weights above their critical scale, a recurrence with factors above 1, a "
            "missing normalisation." if grown else
            "Keep the argument of that operation inside its domain (clamp, eps, where) before it, not after.",
            certainty=EXACT,
        )
    ]  # fmt: skip


def backward_raises(facts: Observed) -> list[Finding]:
    """The backward of the loss (or of the projected prediction) raises, also when nothing is recorded."""
    try:
        _ = facts.gradients
        return []
    except RuntimeError:
        error = unwatched_backward(facts.subject)
    if error is None:
        return []
    text = " ".join(str(error).split())[:300]
    inplace = "modified by an inplace operation" in text
    return [
        Finding(
            "backward_raises", "fault", Place(), None, f"the backward raises {type(error).__name__}: {text}",
            "Write the operation that overwrites out of place (x = x + y instead of x += y)." if inplace else
            "Look for the operation it names; torch.autograd.set_detect_anomaly(True) shows its line.",
        )
    ]  # fmt: skip


def nonfinite_gradient(facts: Observed) -> list[Finding]:
    """A parameter whose gradient is not finite although output and loss are."""
    if not all_finite(facts.forward.predicted) or (facts.loss is not None and not all_finite(facts.loss)):
        return []
    bad = [name for name, value in facts.gradients.items() if value is not None and not all_finite(value)]
    if not bad:
        return [] if not facts.gradients else [fine("gradients_finite", 0.0, "gradients finite")]
    return [
        Finding(
            "nonfinite_gradient", "fault", Place(module_of(bad[-1]), bad[-1]), float(len(bad)),
            f"the gradient of {listed(bad[::-1])} is not finite although the output is.",
            "Look for sqrt or norm at 0, log or division near 0, or where() over an infinite branch: "
            "autograd multiplies 0 by infinity there.", unit="parameters",
        )
    ]  # fmt: skip


def unscaled_input(facts: Observed) -> list[Finding]:
    """rms of the real input."""
    real = [tensor for tensor in facts.subject.sample.floating if tensor.ndim > 1]
    if not real:
        return []
    x = max(real, key=lambda tensor: tensor.numel())
    size, limit = rms(x), threshold("unscaled_input", "warning")
    facts.measures["unscaled_input"] = size
    if not size > limit:
        return _uneven(facts, x)
    return [
        judged(
            "unscaled_input", "warning", size, limit,
            f"the input has rms {size:.3g}, mean {float(x.double().mean()):.3g}; weights are initialised for about 1.",
            where=Place("sample"), certainty=beyond("unscaled_input"),
            advice="Standardise it: subtract the mean and divide by the standard deviation of each feature.",
            code="x = (x - x.mean(0)) / x.std(0)",
        )
    ]  # fmt: skip


def _uneven(facts: Observed, x: Tensor) -> list[Finding]:
    """A note if the deviations of features (axis 1, or the last of sequences) differ by more than a hundred."""
    axis = 1 if x.ndim in (2, 4) else x.ndim - 1
    if x.shape[0] < 4 or x.shape[axis] < 2 or x.is_complex():
        return []
    spread = x.detach().double().movedim(axis, 0).flatten(1).std(1)
    moving = spread[spread > 0]
    if len(moving) < 2:
        return []
    ratio = float(moving.max() / moving.min())
    facts.measures["feature_ratio"] = ratio
    if not ratio > threshold("unscaled_input", "features"):
        return []
    return [
        Finding(
            "uneven_features", "note", Place("sample"), ratio,
            f"standard deviations of the input's features differ by a factor of {ratio:.3g}: the largest, feature "
            f"{int(spread.argmax())}, speaks for all.", "Standardise each feature.", "x = (x - x.mean(0)) / x.std(0)",
            threshold=threshold("unscaled_input", "features"), unit="ratio",
        )
    ]  # fmt: skip


def forward_raised(raised: ForwardRaised) -> Finding:
    """The model's own error, quoted, with the modules it came through."""
    error, stack = raised.error, raised.stack
    text = " ".join(str(error).split())[:300]
    names = stack.at_raise or tuple(stack.names)
    advice = "Check that the sample has the shape and type that the model takes."
    if "more than 1 value per channel" in text:
        advice = "Batch normalisation needs more than one value per channel: pass a larger batch or call model.eval()."
    return Finding(
        "forward_raises", "fault", Place(next((name for name in reversed(names) if name), "")), None,
        f"the forward raises {type(error).__name__}: {text}", advice,
    )  # fmt: skip
