"""Which loss somebody's function is, found by probing it on made-up predictions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn

from separatrix.core import stream_seed

from ...model_call import real_tensors, with_tensor
from ...recording.observed import Observed


@dataclasses.dataclass(frozen=True)
class LossKind:
    """What a loss turned out to be when it was probed."""

    name: Literal["softmax", "nll", "bce_logits", "other"]
    classes: int
    axis: int
    scale: float
    """What the mean loss is multiplied with (the number of samples for a sum)."""
    of: Tensor
    """What the loss takes scores from."""
    path: tuple[str, ...] | None = None
    """Where that stands in the model's output; None for the prediction itself."""


def loss_kind(facts: Observed) -> LossKind | None:
    """Probe the loss on made-up predictions: values at 0, under shifts, and slopes far out; once for every model.

    A loss of a whole output is probed at each of its tensors in turn, the others as they are. A loss that the model
    computes itself is compared with the cross entropy of its scores and the whole numbers of the sample. Cost: a few
    losses.
    """
    if facts.loss is None:
        return None
    if not hasattr(facts, "_loss_kind"):
        kind = _own(facts) if facts.subject.own_loss else _found(facts)
        facts._loss_kind = kind  # type: ignore[attr-defined]
        if kind is not None and kind.name != "other":
            facts.measures["loss_classes"] = float(kind.classes if kind.name != "bce_logits" else 2)
    return facts._loss_kind  # type: ignore[attr-defined]


def _found(facts: Observed) -> LossKind | None:
    kind, refused = None, ""
    for loss, of, path in _candidates(facts):
        try:
            kind = _probed(facts, loss, of, path)
        except Exception as error:  # somebody's function may refuse made-up numbers
            refused = type(error).__name__
            continue
        if kind.name != "other":
            return kind
    if kind is None:
        facts.skip("output_loss_mismatch", f"the loss refuses made-up predictions ({refused})")
    elif facts.subject.whole:
        facts.skip("output_loss_mismatch", "the loss of the whole output is no plain cross entropy of one of its parts")
    return kind


def _candidates(facts: Observed) -> Iterator[tuple[Callable[[Tensor], Tensor], Tensor, tuple[str, ...] | None]]:
    """The loss as a function of one tensor: of the prediction, or of each tensor of a whole output."""
    loss, output = facts.subject.loss, facts.forward.output
    assert loss is not None
    if not facts.subject.whole:
        yield loss, facts.forward.predicted, None
        return
    for path, tensor in [found for found in real_tensors(output) if found[1].ndim > 0][:6]:
        yield _with_one(loss, output, tensor), tensor, path


def _with_one(loss: Callable[[Any], Tensor], output: Any, old: Tensor) -> Callable[[Tensor], Tensor]:
    """The loss as a function of one tensor of the output."""
    return lambda z: loss(with_tensor(output, old, z))


def _probed(facts: Observed, loss: Callable[[Tensor], Tensor], of: Tensor, path: tuple[str, ...] | None) -> LossKind:
    shape = of.detach()
    generator = torch.Generator().manual_seed(stream_seed(facts.subject.seed, "check", "loss"))
    z = torch.randn(shape.shape, generator=generator, dtype=torch.float64).to(shape)

    def value(x: Tensor) -> float:
        with torch.no_grad():
            return float(loss(x))

    at_zero, here, shifted = value(torch.zeros_like(z)), value(z), value(z + 3.0)
    for axis in dict.fromkeys((shape.ndim - 1, 1) if shape.ndim > 1 else ()):
        classes = int(shape.shape[axis])
        for scale in _scales(shape, classes) if classes > 1 else ():
            tolerance = 2e-3 * scale
            if abs(at_zero - scale * math.log(classes)) < tolerance and abs(shifted - here) < tolerance:
                return LossKind("softmax", classes, axis, scale, of, path)
            if abs(at_zero) < tolerance and abs(shifted - here + 3.0 * scale) < tolerance:
                return LossKind("nll", classes, axis, scale, of, path)
    up = (value(torch.full_like(z, 80.0)) - value(torch.full_like(z, 40.0))) / 40
    down = (value(torch.full_like(z, -80.0)) - value(torch.full_like(z, -40.0))) / 40
    for scale in _scales(shape, 2):
        if abs(at_zero - scale * math.log(2)) < 2e-3 * scale and abs(up + down - scale) < 2e-3 * scale:
            return LossKind("bce_logits", 2, shape.ndim - 1, scale, of, path)
    return LossKind("other", 0, 0, 1.0, of, path)


def _own(facts: Observed) -> LossKind | None:
    """Cross entropy inside the model: of its scores and some whole numbers of the sample, shifted by one or not."""
    scores, loss = facts.forward.predicted.detach(), facts.loss
    if scores.ndim < 2 or not scores.is_floating_point() or scores.shape[-1] < 2 or loss is None:
        return None
    for labels in facts.subject.sample.tensors:
        if labels.dtype != torch.int64 or labels.shape != scores.shape[:-1]:
            continue
        for cut in (0, 1) if labels.ndim > 1 else (0,):
            x = scores[:, : scores.shape[1] - cut] if cut else scores
            y = labels[:, cut:] if cut else labels
            if bool(((y >= 0) & (y < x.shape[-1]) | (y == -100)).all()):
                mean = nn.functional.cross_entropy(x.flatten(0, -2).double(), y.flatten())
                if abs(float(mean) - float(loss)) < 2e-3 * max(abs(float(mean)), 1e-3):
                    return LossKind("softmax", int(scores.shape[-1]), scores.ndim - 1, 1.0, facts.forward.predicted)
    return None


def _scales(shape: Tensor, classes: int) -> list[float]:
    """1 for a mean; the number of samples, positions or numbers for a sum."""
    return [float(k) for k in dict.fromkeys((1, shape.shape[0], shape.numel() // max(classes, 1), shape.numel()))]
