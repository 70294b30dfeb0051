"""What one visit of ``watch`` to a training run saw, and what of it is far from the first visits of the same run."""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import final

from separatrix.core import Result

from ..findings.finding import Finding, Place
from ..findings.thresholds import threshold

RATE = "the rate of gradients along the sequence"


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Visit(Result):
    """What one visit saw."""

    step: int
    loss: float | None
    gradients: dict[str, float]
    """rms of the gradient of each matrix."""
    step_ratio: float | None
    """|change of the parameters| / |parameters| of this step."""
    head_spread: float | None
    dead: float | None
    entropy: float | None
    seconds: float
    rate: float | None = None
    """Slope per step of ln |gradient| along the first recurrent layer; every tenth visit."""


def broken(visit: Visit) -> list[tuple[str, Finding]]:
    """What is not finite."""
    bad = [name for name, value in visit.gradients.items() if not math.isfinite(value)]
    found = []
    if bad:
        said = f"step {visit.step}: the gradient of {bad[0]} is not finite."
        found.append(("gradient", Finding("nonfinite_gradient", "fault", Place(bad[0]), float(len(bad)), said)))
    if visit.loss is not None and not math.isfinite(visit.loss):
        said = f"step {visit.step}: the loss is not finite."
        found.append(("loss", Finding("nonfinite_output", "fault", Place("loss"), visit.loss, said)))
    return found


def alarms(visit: Visit, base: list[Visit]) -> list[tuple[str, Finding]]:
    """What is far from the first visits of the same run."""
    found = broken(visit)

    def add(id: str, place: str, value: float, start: float, what: str) -> None:
        said = f"step {visit.step}: {what} is {value:.3g}, at the beginning it was {start:.3g}."
        found.append((f"{id} {place}", Finding(id, "warning", Place(place), value, said)))

    for name, value in visit.gradients.items():
        start = _median([old.gradients.get(name) for old in base])
        if start and value < threshold("watch", "fall") * start:
            add("vanishing", name, value, start, f"the gradient of {name}")
        if start and value > threshold("watch", "rise") * start:
            add("exploding", name, value, start, f"the gradient of {name}")
    start = _median([old.dead for old in base])
    if start is not None and visit.dead is not None and visit.dead > start + threshold("watch", "dead"):
        add("dead_units", "", visit.dead, start, "the largest share of dead units")
    start = _median([old.entropy for old in base])
    if start and visit.entropy is not None and visit.entropy < threshold("watch", "entropy") * start:
        add("attention_collapse", "", visit.entropy, start, "the least attention entropy")
    start = _median([old.head_spread for old in base])
    if start and visit.head_spread is not None and visit.head_spread < threshold("watch", "spread") * start:
        add("input_lost", "", visit.head_spread, start, "the difference between samples at the head")
    start = _median([old.rate for old in base])
    if start is not None and visit.rate is not None:
        if visit.rate < min(start - threshold("watch", "rate"), threshold("short_memory", "fault")):
            add("short_memory", RATE, visit.rate, start, RATE)
        if visit.rate > max(start + threshold("watch", "rate"), threshold("time_growth", "fault")):
            add("time_growth", RATE, visit.rate, start, RATE)
    start = _median([old.step_ratio for old in base])
    if start and visit.step_ratio is not None and visit.step_ratio > threshold("watch", "step") * start:
        add("learning_rate", "", visit.step_ratio, start, "the relative size of a step")
    return found


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.median(known) if known else None
