"""Weights that get no gradient now: for good, or only until their neighbours have moved."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...findings.finding import Finding, Place
from ...findings.thresholds import threshold
from ...recording.observed import Observed
from ...recording.passes import parameter_gradients
from ...recording.protection import moved
from ...recording.subject import as_left
from ..reporting import listed, module_of


def stuck_weights(facts: Observed) -> list[Finding]:
    """Matrices of exactly zero gradient now and after each of 4 virtual steps of length 0.03 max(|theta|, 1) along -g.

    Zeros in series (a zero head after a zero last layer) wake up after three steps. Cost: 4 forwards and backwards,
    only if some gradient is exactly zero.
    """
    zero = facts.zero_matrices
    if not zero:
        return []
    estimate = 4 * 3.5 * facts.forward_seconds
    if not facts.budget.allows(estimate):
        facts.skip("stuck_weights", "no time left", f"about {estimate:.0f} more seconds")
        return []
    uses = facts.forward.operations.uses
    still = _after_steps(facts, set(zero))
    woken = [name for name in zero if name not in still]
    found = []
    if still and not any(uses[name].fed for name in still if name in uses):
        facts.skip("stuck_weights", f"only zeros enter {listed(sorted(still))} in this batch", "a longer sample")
        still = set()
    if still:
        names = sorted(still)
        found.append(
            Finding(
                "stuck_weights",
                "fault",
                Place(module_of(names[0]), names[0]),
                float(len(names)),
                f"{listed(names)} get a gradient of exactly zero now and after each of 4 virtual steps.",
                "Of two factors in series at least one must start non-zero: a zero gate or a zero last layer, "
                "LoRA's A or B, not both.",
                unit="matrices",
            )
        )
    if woken:
        found.append(
            Finding(
                "zero_start",
                "note",
                Place(module_of(woken[0]), woken[0]),
                float(len(woken)),
                f"{listed(woken)} get no gradient yet and do after at most 4 steps: a zero start, usually meant.",
                unit="matrices",
            )
        )
    return found


def _after_steps(facts: Observed, zero: set[str]) -> set[str]:
    subject = facts.subject
    trainable = subject.trainable
    point = {name: value.detach().clone() for name, value in trainable.items()}
    gradients = facts.gradients
    for _ in range(int(threshold("stuck_weights", "steps"))):
        point = _step(point, gradients)
        with moved({trainable[name]: value for name, value in point.items()}), as_left(subject.model):
            output, _ = subject.forward()
            gradients = parameter_gradients(subject, output)
        zero = {name for name in zero if not _nonzero(gradients.get(name))}
        if not zero:
            break
    return zero


def _nonzero(gradient: Tensor | None) -> bool:
    return gradient is not None and bool((gradient != 0).any())


def _step(point: dict[str, Tensor], gradients: dict[str, Tensor | None]) -> dict[str, Tensor]:
    size = math.sqrt(sum(float(value.double().square().sum()) for value in point.values()))
    steep = math.sqrt(sum(float(value.double().square().sum()) for value in gradients.values() if value is not None))
    if not steep > 0 or not math.isfinite(steep):
        return point
    rate = threshold("stuck_weights", "length") * max(size, 1.0) / steep
    return {
        name: value if gradients.get(name) is None else torch.add(value, gradients[name], alpha=-rate)  # type: ignore[arg-type]
        for name, value in point.items()
    }
