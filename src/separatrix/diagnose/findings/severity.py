"""How bad a finding is: four words in order, and when a value is too near its threshold for the stronger one."""

from __future__ import annotations

from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["ok", "note", "warning", "fault"]

SEVERITIES: tuple[Severity, ...] = ("ok", "note", "warning", "fault")
"""From nothing to report up to: training cannot work as it is, or its result is wrong whatever the training."""

Scale: TypeAlias = Literal["ratio", "share", "decades"]
"""How distances of a measure are read: as they are, as a share of one, or as powers of ten."""

NEAR = 0.2
"""A value within this part of its threshold is one level less severe, and the finding says so."""


def rank(severity: Severity) -> int:
    """0 for ``ok`` to 3 for ``fault``."""
    return SEVERITIES.index(severity)


def milder(severity: Severity) -> Severity:
    """One level less; ``ok`` stays."""
    return SEVERITIES[max(0, rank(severity) - 1)]


def is_near(value: float, threshold: float, scale: Scale = "ratio") -> bool:
    """Whether a value lies within 20 % of its threshold.

    Of a share beyond one half the rest to one counts (0.92 is nearer to 0.9 than 1.0 is), of decades the factor 1.2.

    Example:
        >>> is_near(0.55, 0.5), is_near(1.0, 0.9, "share"), is_near(-4.05, -4.0, "decades")
        (True, False, True)
    """
    if scale == "decades":
        return abs(value - threshold) < 0.0792  # log10(1.2)
    if scale == "share" and threshold > 0.5:
        value, threshold = 1 - value, 1 - threshold
    return abs(value - threshold) < NEAR * abs(threshold)
