"""How detectors put what they measured into findings."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..findings.finding import EXACT, Certainty, Finding, Place
from ..findings.severity import Scale, Severity, is_near, milder
from ..findings.thresholds import reference


def beyond(measure: str) -> Certainty:
    """The certainty of a value outside the range of healthy models; not calibrated if there is none."""
    found = reference(measure)
    return Certainty("none") if found is None else Certainty("null", reference=found, n=found.n)


def judged(
    id: str,
    severity: Severity,
    value: float,
    threshold: float,
    meaning: str,
    *,
    scale: Scale = "ratio",
    where: Place | None = None,
    certainty: Certainty = EXACT,
    **rest: Any,
) -> Finding:
    """A finding by a threshold: one level milder, and says so, if the value is within 20 % of it."""
    if is_near(value, threshold, scale) and severity in ("warning", "fault"):
        severity, meaning = milder(severity), f"{meaning} Near its threshold {threshold:.3g}: one level milder."
    return Finding(id, severity, where or Place(), value, meaning, threshold=threshold, certainty=certainty, **rest)


def fine(id: str, value: float | None, meaning: str, **rest: Any) -> Finding:
    """Measured, and inside the range."""
    return Finding(id, "ok", Place(), value, meaning, **rest)


def softened(finding: Finding, reason: str) -> Finding:
    """One level milder, with the reason."""
    if finding.severity not in ("warning", "fault"):
        return finding
    return dataclasses.replace(finding, severity=milder(finding.severity), meaning=f"{finding.meaning} {reason}")


def module_of(parameter: str) -> str:
    """The path of the module that owns a parameter."""
    return parameter.rpartition(".")[0]


def listed(names: list[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
