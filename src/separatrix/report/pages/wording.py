"""Values as people read them: numbers, durations, verdicts, names that may stand in an address."""

from __future__ import annotations

import re
from typing import Any

from separatrix.core.result import brief
from separatrix.lab.experiment.claim import Verdict

VERDICT_MARKS = {
    Verdict.CONFIRMED: "✓",
    Verdict.MISPRINT: "✎",
    Verdict.CONDITIONAL: "◐",
    Verdict.REFUTED: "✗",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_RUN: "…",
}
"""A sign beside each verdict's words, for readers who do not see colours."""


def shown(value: Any) -> str:
    """A value in a table: six digits, yes or no, a dash for nothing; long values are cut."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return brief(", ".join(shown(item) for item in value), width=240)
    return brief(value, width=240)


def is_number(value: Any) -> bool:
    """Whether a value should be aligned as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Example:
        >>> duration(0.25), duration(75.0), duration(7300.0)
        ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def slug(name: str) -> str:
    """A name reduced to letters, digits, ``-`` and ``_``, fit for an address or a file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-").lower() or "unnamed"
