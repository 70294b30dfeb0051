"""Are measures at the floor of the model's own precision? Depth, time and curvature once more in double precision."""

from __future__ import annotations

import dataclasses
import math

import torch

from ...findings.finding import Finding, Place
from ...findings.thresholds import threshold
from ...model_call import evaluation_mode
from ...recording.observed import Observed
from ...recording.precision import in_double, widened_sample
from ...recording.subject import Subject
from ..forward.signal import depth_measures
from ..layers.time import fitted_rate, time_norms
from .sharpness import curvature_along

_SAMPLES, _LARGEST = 4, 20_000_000


def precision(facts: Observed) -> list[Finding]:
    """The gradient's gain over depth, the rate of a loop per step, and the curvature along the sharpest direction, on at
    most four samples in evaluation mode, by the model's own numbers and by doubles; a note where they differ by more
    than 5 %. Rates of recurrent layers are measured in double precision anyway.

    Cost: four forwards and backwards of four samples, and four more of each for the curvature.
    """
    subject = facts.subject
    size = sum(value.numel() for value in subject.parameters.values())
    refused = _refused(facts, size)
    if refused:
        facts.skip("precision", refused)
        return []
    small = _cut(subject)
    with evaluation_mode(subject.model):
        if _draws(small):
            facts.skip("precision", "the model draws random numbers, which differ between precisions")
            return []
        single = _measures(small, facts)
        with in_double(subject.model):
            double = _measures(dataclasses.replace(small, sample=widened_sample(small.sample)), facts)
    apart = {name: (single[name], double[name]) for name in single if name in double}
    wide = {name: abs(a - b) / max(abs(b), 1e-30) for name, (a, b) in apart.items()}
    limit = threshold("precision", "note")
    for name, value in wide.items():
        facts.measures[f"precision_{name}"] = value
    worst = {name: value for name, value in wide.items() if value > limit}
    if not worst:
        return []
    said = ", ".join(f"{name} {apart[name][0]:.3g} instead of {apart[name][1]:.3g}" for name in sorted(worst))
    return [
        Finding(
            "precision", "note", Place(), max(worst.values()),
            f"single precision is not enough for what is measured: {said} in double ({small.sample.n} samples).",
            "Read these measures with care; model.double() measures without that error.", "model.double()",
            threshold=limit, unit="share",
        )
    ]  # fmt: skip


def _refused(facts: Observed, size: int) -> str:
    dtypes = {value.dtype for value in facts.subject.parameters.values()}
    if size > _LARGEST:
        return f"more than {_LARGEST:,} parameters"
    if not dtypes or dtypes <= {torch.float64, torch.complex128}:
        return "the model is in double precision already" if dtypes else "no parameters"
    return "packed sequences" if facts.subject.sample.packed else ""


def _cut(subject: Subject) -> Subject:
    """The same subject with its first samples alone, and the loss of those."""
    sample = subject.sample.first(_SAMPLES)
    loss = subject.loss_of_first(sample.n) if subject.loss_of_first is not None else None
    return dataclasses.replace(subject, sample=sample, loss=loss)


def _draws(subject: Subject) -> bool:
    """Whether a forward in evaluation mode asks for random numbers, of torch's state or of a generator of its own."""
    outputs, states = [], []
    with torch.no_grad():
        for again in (False, True):
            args, kwargs, _ = subject.sample.leaves(direct=subject.direct)
            output = subject.model(*args, **kwargs) if again else subject.call(args, kwargs)
            outputs.append(subject.predicted(output).detach().clone())
            states.append(torch.get_rng_state())
    return not (torch.equal(*states) and torch.equal(*outputs))


def _measures(subject: Subject, facts: Observed) -> dict[str, float]:
    """Gains, not their logarithms: a logarithm near zero has no relative error."""
    probe, found = Observed(subject, facts.budget), {}
    gain, _ = depth_measures(probe)
    if gain is not None:
        found["gradient gain over depth"] = 10.0**gain
    norms = time_norms(probe)
    rate = fitted_rate(norms) if norms is not None else None
    if rate is not None and rate.r2 >= threshold("time_growth", "r2"):
        found["gradient gain over time"] = math.exp(min(rate.mean * (rate.norms.numel() - 1), 700.0))
    direction = facts.sharpest
    if direction is not None and subject.loss is not None:
        found["curvature"] = curvature_along(probe, direction)
    return {name: value for name, value in found.items() if math.isfinite(value)}
